"""Whether a pod may be bound to a node at all: readiness, cordon, taints, node selector and node affinity, as
the scheduler decides it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from grove.topology.placement.answers import Reason
from grove.topology.placement.model import Node, PodShape, Requirement, Taint, Term, Toleration

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_KEEPS_OUT = ("NoSchedule", "NoExecute")
_CORDON = Taint("node.kubernetes.io/unschedulable")
_BY_TAINT = {
    _CORDON.key: Reason.CORDONED,
    "node.kubernetes.io/not-ready": Reason.NOT_READY,
    "node.kubernetes.io/unreachable": Reason.NOT_READY,
}
"""What Kubernetes itself marks with a taint."""
_MATCHES: dict[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _compare(value, values, 1),
    "Lt": lambda value, values: _compare(value, values, -1),
}


def rejection(shape: PodShape, node: Node) -> tuple[Reason, str] | None:
    """Why a pod may not go to a node, and about which taint or label; None if it may. Of several reasons the
    one that lasts longest: a node that the pods do not select is none to uncordon."""
    if (mismatch := _selector_mismatch(shape, node)) is not None:
        return mismatch
    taints = {_BY_TAINT.get(key, Reason.TAINT): key for key in _untolerated(shape, node)}
    if Reason.TAINT in taints:
        return Reason.TAINT, taints[Reason.TAINT]
    if Reason.CORDONED in taints:
        return Reason.CORDONED, ""
    return (Reason.NOT_READY, "") if taints or not node.ready else None


def selector_keys(shape: PodShape) -> frozenset[str]:
    """The label keys on which the eligibility of nodes depends."""
    terms = shape.affinity or ()
    return frozenset(shape.node_selector).union(r.key for term in terms for r in term.expressions)


def names_nodes(shape: PodShape) -> bool:
    """Whether the eligibility of a node depends on its name."""
    return any(term.fields for term in shape.affinity or ())


def contradiction(shape: PodShape) -> str:
    """A label key of the node selector that every term of the affinity rules out: no node can match both.
    Empty if there is none."""
    terms = shape.affinity
    if not terms:
        return ""
    keys = [_ruled_out(shape.node_selector, term) for term in terms]
    return keys[0] if all(keys) else ""


def _ruled_out(selector: Mapping[str, str], term: Term) -> str:
    for each in term.expressions:
        value = selector.get(each.key)
        if value is not None and not _matches(each, value):
            return each.key
    return ""


def _selector_mismatch(shape: PodShape, node: Node) -> tuple[Reason, str] | None:
    labels = node.labels
    for key, value in shape.node_selector.items():
        if labels.get(key) != value:
            return Reason.SELECTOR, key
    terms = shape.affinity
    if terms is not None and not any(_term_matches(term, node) for term in terms):
        named = [
            (each.key, _matches(each, labels.get(each.key))) for term in terms for each in term.expressions
        ]
        named += [(each.key, False) for term in terms for each in term.fields]
        return Reason.SELECTOR, next((key for key, matches in named if not matches), "")
    return None


def _term_matches(term: Term, node: Node) -> bool:
    """A term without any expression matches no node."""
    if not term.expressions and not term.fields:
        return False
    return all(_matches(each, node.labels.get(each.key)) for each in term.expressions) and all(
        each.key == "metadata.name" and _matches(each, node.name) for each in term.fields
    )


def _matches(requirement: Requirement, value: str | None) -> bool:
    match = _MATCHES.get(requirement.operator)
    return match is not None and match(value, requirement.values)


def _compare(value: str | None, values: tuple[str, ...], sign: int) -> bool:
    """Whether a label is a larger (sign 1) or smaller (sign -1) integer than the only value."""
    if value is None or len(values) != 1 or not all(map(_INTEGER.fullmatch, (value, values[0]))):
        return False
    return (int(value) - int(values[0])) * sign > 0


def _untolerated(shape: PodShape, node: Node) -> Iterator[str]:
    """The keys of the taints that keep a pod off a node."""
    taints = (*node.taints, _CORDON) if node.unschedulable else node.taints
    for taint in taints:
        if taint.effect in _KEEPS_OUT and not _tolerated(taint, shape.tolerations):
            yield taint.key


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:  # comparison operators are an alpha feature, and off
            return False
