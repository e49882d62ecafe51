"""Reading a PodGang that is yet to be written, as all backends do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.types.clustertopology import TopologyConstraint
from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.podgang import PodGang

Body = dict[str, Any]

THE_SET = "the PodCliqueSet"


def group_label(name: str) -> str:
    """How users are told of a scaling group."""
    return f"scaling group {name}"


def clique_label(name: str) -> str:
    """How users are told of a clique."""
    return f"clique {name}"


def minimum(gang: Body) -> int:
    """How many pods must be placed together."""
    return sum(group["minReplicas"] for group in gang["spec"]["podgroups"])


def owner_references(gang: Body, uid: str) -> list[Body]:
    """The gang as the one owner of what a scheduler is told about it."""
    kind = PodGang.KIND
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "name": gang["metadata"]["name"], "uid": uid}
    return [{**owner, "controller": True, "blockOwnerDeletion": True}]


def pack_key(part: Body, how: str) -> str:
    """The label key that a gang, or a part of it, must or should share; empty if it asks for none."""
    constraint = part.get("topologyConstraint") or {}
    key: str = (constraint.get("packConstraint") or {}).get(how, "")
    return key


def constraints(template: PodCliqueSetTemplate) -> Iterator[tuple[str, TopologyConstraint]]:
    """All constraints of a set, with whose they are."""
    if template.topology_constraint is not None:
        yield THE_SET, template.topology_constraint
    for group in template.pod_clique_scaling_groups:
        if group.topology_constraint is not None:
            yield group_label(group.name), group.topology_constraint
    for clique in template.cliques:
        if clique.topology_constraint is not None:
            yield clique_label(clique.name), clique.topology_constraint
