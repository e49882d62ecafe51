"""Reads the body of a PodGang and the constraints of a set, for all backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.podgang import PodGang
from grove.api.types.topology_constraint import TopologyConstraint

Body = dict[str, Any]

THE_SET = "the PodCliqueSet"


def group_label(name: str) -> str:
    """A scaling group in messages for users."""
    return f"scaling group {name}"


def clique_label(name: str) -> str:
    """A clique in messages for users."""
    return f"clique {name}"


def minimum(gang: Body) -> int:
    """How many pods must be scheduled together."""
    return sum(group["minReplicas"] for group in gang["spec"]["podgroups"])


def owner_references(gang: Body, uid: str) -> list[Body]:
    """The PodGang as the controller owner of the object that a scheduler has for it."""
    kind = PodGang.KIND
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "name": gang["metadata"]["name"], "uid": uid}
    return [{**owner, "controller": True, "blockOwnerDeletion": True}]


def pack_key(part: Body, how: str) -> str:
    """The node label that the constraint of a gang, or of a part of it, names; empty if there is none. `how`
    is `required` or `preferred`."""
    constraint = part.get("topologyConstraint") or {}
    key: str = (constraint.get("packConstraint") or {}).get(how, "")
    return key


def constraints(template: PodCliqueSetTemplate) -> Iterator[tuple[str, TopologyConstraint]]:
    """All constraints of a set, with the name of the part that has it."""
    if template.topology_constraint is not None:
        yield THE_SET, template.topology_constraint
    for group in template.pod_clique_scaling_groups:
        if group.topology_constraint is not None:
            yield group_label(group.name), group.topology_constraint
    for clique in template.cliques:
        if clique.topology_constraint is not None:
            yield clique_label(clique.name), clique.topology_constraint
