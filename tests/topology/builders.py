"""Builders for topologies and constraints in a short notation.

a_topology("zone rack=example.com/rack host")               levels `domain=key`, broad to narrow
packed(a_set("a b", "x=b"), "rack/host a:host x:/rack")     `part:required/preferred`, the set first
"""

from __future__ import annotations

from typing import Any

from grove.topology.constraints import ResolvedTopology

Body = dict[str, Any]

NAME = "racks"
KEYS = {"zone": "topology.kubernetes.io/zone", "rack": "example.com/rack", "host": "kubernetes.io/hostname"}


def a_topology(levels: str = "zone rack host", name: str = NAME, **fields: Any) -> ResolvedTopology:
    """An existing topology, with the keys above unless a level names another."""
    pairs = [level.partition("=")[::2] for level in levels.split()]
    return ResolvedTopology(
        name, {domain: key or KEYS[domain] for domain, key in pairs}, found=True, **fields
    )


def missing(name: str = NAME) -> ResolvedTopology:
    """A topology that does not exist."""
    return ResolvedTopology(name)


def packed(workload: Body, wishes: str, name: str = NAME, *, old_spelling: bool = False) -> Body:
    """The set with topology constraints on itself and its parts."""
    template = workload["spec"]["template"]
    parts = {part["name"]: part for part in template["cliques"] + template.get("podCliqueScalingGroups", [])}
    whole: Body = {"topologyName": name} if name else {}
    for wish in wishes.split():
        part, colon, how = wish.rpartition(":")
        constraint = _constraint(how, old_spelling)
        if colon:
            parts[part]["topologyConstraint"] = constraint
        else:
            whole |= constraint
    if whole:
        template["topologyConstraint"] = whole
    return workload


def _constraint(how: str, old_spelling: bool) -> Body:
    required, _, preferred = how.partition("/")
    if old_spelling and required:
        return {"packDomain": required, **({"pack": {"preferred": preferred}} if preferred else {})}
    pack = {"required": required, "preferred": preferred}
    return {"pack": {key: value for key, value in pack.items() if value}}
