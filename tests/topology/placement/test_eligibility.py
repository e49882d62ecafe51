"""Which nodes admit a pod, as the scheduler's filters decide it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.topology.placement.answers import Reason
from grove.topology.placement.eligibility import contradiction, rejection
from grove.topology.placement.model import Node, PodShape, Requirement, Taint, Term, Toleration

TAINTED = Node("n", taints=(Taint("gpu", "yes"),))
LABELLED = Node("n", {"disk": "ssd", "generation": "5"})
CORDONED = Node("n", unschedulable=True)


def shape(*tolerations: Toleration, **fields: Any) -> PodShape:
    return PodShape({}, tolerations=tolerations, **fields)


def affinity(*expressions: Requirement) -> PodShape:
    return shape(affinity=(Term(expressions),))


def named(operator: str, *names: str) -> PodShape:
    return shape(affinity=(Term(fields=(Requirement("metadata.name", operator, names),)),))


SELECTOR, TAINT = Reason.SELECTOR, Reason.TAINT
CORDON, LOST = Taint("node.kubernetes.io/unschedulable"), Taint("node.kubernetes.io/unreachable")
CASES: list[tuple[str, PodShape, Node, tuple[Reason, str] | None]] = [
    ("plain", shape(), Node("n"), None),
    ("not ready", shape(), Node("n", ready=False), (Reason.NOT_READY, "")),
    ("cordoned", shape(), CORDONED, (Reason.CORDONED, "")),
    ("cordon tolerated", shape(Toleration(operator="Exists")), CORDONED, None),
    ("tainted", shape(), TAINTED, (TAINT, "gpu")),
    ("cordoned by a taint", shape(), Node("n", taints=(CORDON,)), (Reason.CORDONED, "")),
    ("not ready by a taint", shape(), Node("n", taints=(LOST,)), (Reason.NOT_READY, "")),
    ("cordoned and tainted", shape(), replace(TAINTED, unschedulable=True), (TAINT, "gpu")),
    ("cordoned and not ready", shape(), replace(CORDONED, ready=False), (Reason.CORDONED, "")),
    (
        "tainted and not selected",
        shape(node_selector={"x": "1"}),
        replace(TAINTED, ready=False),
        (SELECTOR, "x"),
    ),
    ("taint that only prefers", shape(), Node("n", taints=(Taint("a", "", "PreferNoSchedule"),)), None),
    ("taint that evicts", shape(), Node("n", taints=(Taint("a", "", "NoExecute"),)), (TAINT, "a")),
    ("tolerated by value", shape(Toleration("gpu", "Equal", "yes")), TAINTED, None),
    ("default operator compares", shape(Toleration("gpu", value="yes")), TAINTED, None),
    ("another value", shape(Toleration("gpu", "Equal", "no")), TAINTED, (TAINT, "gpu")),
    ("another effect", shape(Toleration("gpu", "Exists", effect="NoExecute")), TAINTED, (TAINT, "gpu")),
    ("tolerates every key", shape(Toleration(operator="Exists")), TAINTED, None),
    ("comparison is off", shape(Toleration("gpu", "Gt", "1")), TAINTED, (TAINT, "gpu")),
    ("selector", shape(node_selector={"disk": "ssd"}), LABELLED, None),
    ("selector of another value", shape(node_selector={"disk": "hdd"}), LABELLED, (SELECTOR, "disk")),
    ("selector of a missing label", shape(node_selector={"x": "1"}), LABELLED, (SELECTOR, "x")),
    ("In", affinity(Requirement("disk", "In", ("a", "ssd"))), LABELLED, None),
    ("NotIn", affinity(Requirement("disk", "NotIn", ("ssd",))), LABELLED, (SELECTOR, "disk")),
    ("NotIn of a missing label", affinity(Requirement("x", "NotIn", ("ssd",))), LABELLED, None),
    ("Exists", affinity(Requirement("disk", "Exists")), LABELLED, None),
    ("DoesNotExist", affinity(Requirement("disk", "DoesNotExist")), LABELLED, (SELECTOR, "disk")),
    ("Gt", affinity(Requirement("generation", "Gt", ("4",))), LABELLED, None),
    (
        "Gt of an equal number",
        affinity(Requirement("generation", "Gt", ("5",))),
        LABELLED,
        (SELECTOR, "generation"),
    ),
    ("Lt", affinity(Requirement("generation", "Lt", ("6",))), LABELLED, None),
    ("Gt of a word", affinity(Requirement("disk", "Gt", ("4",))), LABELLED, (SELECTOR, "disk")),
    ("unknown operator", affinity(Requirement("disk", "Near", ("4",))), LABELLED, (SELECTOR, "disk")),
    ("node by name", named("In", "n"), LABELLED, None),
    ("node by another name", named("In", "m"), LABELLED, (SELECTOR, "metadata.name")),
    ("no term matches nothing", shape(affinity=()), LABELLED, (SELECTOR, "")),
    ("an empty term matches nothing", shape(affinity=(Term(),)), LABELLED, (SELECTOR, "")),
    (
        "one of two terms",
        shape(affinity=(Term((Requirement("x", "Exists"),)), Term((Requirement("disk", "Exists"),)))),
        LABELLED,
        None,
    ),
]


@pytest.mark.parametrize(("pod", "node", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_rejection(pod: PodShape, node: Node, expected: tuple[Reason, str] | None) -> None:
    assert rejection(pod, node) == expected


def test_selector_against_every_term_is_a_contradiction() -> None:
    hdd, anything = Requirement("disk", "In", ("hdd",)), Requirement("zone", "Exists")
    selector = {"disk": "ssd"}
    assert contradiction(PodShape({}, selector, (Term((hdd,)),))) == "disk"
    assert contradiction(PodShape({}, selector, (Term((hdd,)), Term((anything,))))) == ""
    assert contradiction(PodShape({}, selector)) == ""
