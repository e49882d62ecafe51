"""What the solver answers about a gang that does not fit, as a reason: one row for each cause."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.reasons.codes import ReasonCode as Code
from grove.reasons.placement import domain_name, refusal_reason
from grove.topology.placement.answers import GaveUp, NoFit, Reason, Shortage, one_shortage
from grove.topology.placement.model import Node, NodeUse, PodShape, Requirement, Taint, Term, Unit
from tests.topology.placement.builders import GPU, LEVELS, a_gang, a_node, a_shape, pods, racks, refuse, used

NO_SUCH_RESOURCE = PodShape({"example.com/none": 1})
TWO_NODES = racks(racks_a_zone=1)
FULL = {"a-1-1": used(8), "a-1-2": used(8)}
MAINTENANCE = (Taint("maintenance", "", "NoSchedule"),)


def with_first(nodes: list[Node], **changes: Any) -> list[Node]:
    return [replace(nodes[0], **changes), *nodes[1:]]


def reserved(gpus: int) -> NodeUse:
    return NodeUse({}, {GPU: gpus, "pods": 1})


CAUSES = [
    ("other pods use the nodes", TWO_NODES, a_gang(2), FULL, Code.INSUFFICIENT_RESOURCES),
    ("no node has the resource", TWO_NODES, a_gang(shape=NO_SUCH_RESOURCE), {}, Code.INSUFFICIENT_RESOURCES),
    ("no nodes", [], a_gang(2), {}, Code.INSUFFICIENT_RESOURCES),
    ("more than all nodes have", TWO_NODES, a_gang(3), {}, Code.GANG_TOO_LARGE),
    ("more than all full nodes have", TWO_NODES, a_gang(3), FULL, Code.GANG_TOO_LARGE),
    ("pod larger than any node", TWO_NODES, a_gang(1, shape=a_shape(9)), {}, Code.GANG_TOO_LARGE),
    ("cordoned node would do", with_first(TWO_NODES, unschedulable=True), a_gang(2), {}, Code.NODE_CORDONED),
    (
        "cordoned node would not be enough",
        with_first(TWO_NODES, unschedulable=True),
        a_gang(2),
        FULL,
        Code.NODE_CORDONED,
    ),
    (
        "cordoned node is not needed",
        with_first(racks(racks_a_zone=1, nodes_a_rack=3), unschedulable=True),
        a_gang(2),
        {"a-1-1": used(8), "a-1-2": used(8)},
        Code.INSUFFICIENT_RESOURCES,
    ),
    (
        "cordoned node is free and others are full",
        with_first(racks(racks_a_zone=1, nodes_a_rack=3), unschedulable=True),
        a_gang(2),
        {"a-1-2": used(8)},
        Code.NODE_CORDONED,
    ),
    (
        "tainted node would not be enough",
        with_first(TWO_NODES, taints=MAINTENANCE),
        a_gang(3),
        {},
        Code.GANG_TOO_LARGE,
    ),
    ("node not ready", with_first(TWO_NODES, ready=False), a_gang(2), {}, Code.NODE_NOT_READY),
    ("tainted node would do", with_first(TWO_NODES, taints=MAINTENANCE), a_gang(2), {}, Code.NODE_TAINT),
    (
        "other nodes than the tainted one are full",
        with_first(racks(racks_a_zone=1, nodes_a_rack=3), taints=MAINTENANCE),
        a_gang(2),
        {"a-1-2": used(8)},
        Code.INSUFFICIENT_RESOURCES,
    ),
    ("selector matches no node", TWO_NODES, a_gang(2, shape=a_shape(node_selector={"pool": "x"})), {},
     Code.NODE_SELECTOR_MISMATCH),
    ("selector matches too few nodes", TWO_NODES,
     a_gang(2, shape=a_shape(node_selector={"name": "a-1-1"})), {}, Code.GANG_TOO_LARGE),
    (
        "selector and affinity exclude each other",
        TWO_NODES,
        a_gang(
            1,
            shape=a_shape(
                node_selector={"pool": "x"},
                affinity=(Term((Requirement("pool", "In", ("y",)),)),),
            ),
        ),
        {},
        Code.AFFINITY_CONTRADICTION,
    ),
    ("no node has the level's label", [a_node("a//n")], a_gang(1, "rack"), {}, Code.TOPOLOGY_LABEL_MISSING),
    ("level that the topology has not", TWO_NODES, a_gang(1, "block"), {}, Code.TOPOLOGY_LABEL_MISSING),
    (
        "selected nodes are tainted",
        [*with_first(TWO_NODES, taints=MAINTENANCE), a_node("b/1/other")],
        a_gang(1, shape=a_shape(node_selector={"name": "a-1-1"})),
        {},
        Code.NODE_TAINT,
    ),
    (
        "reserved for other gangs",
        TWO_NODES,
        a_gang(2),
        {"a-1-1": reserved(8)},
        Code.RESERVED_BY_OTHER_GANG,
    ),
    (
        "enough in total and too little on each node",
        TWO_NODES,
        Unit("gang", "", "", (), (*pods("p", 1, a_shape(8)), *pods("q", 2, a_shape(5)))),
        {},
        Code.GANG_TOO_LARGE,
    ),
    (
        "each rack has room for a part",
        racks(),
        a_gang(2, "rack"),
        {"a-1-1": used(8), "a-2-1": used(8)},
        Code.INSUFFICIENT_RESOURCES,
    ),
    (
        "racks too small beside a full one that is not",
        [*racks(racks_a_zone=1, nodes_a_rack=2), a_node("a/2/a-2-1")],
        a_gang(2, "rack"),
        FULL,
        Code.INSUFFICIENT_RESOURCES,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "gang", "use", "code"), [row[1:] for row in CAUSES], ids=[row[0] for row in CAUSES]
)
def test_refused_gang_has_the_code_of_its_cause(nodes, gang, use, code):
    assert refusal_reason(refuse(nodes, gang, use), LEVELS).code is code


def test_failed_domain_is_an_earlier_attempt():
    answer = refuse(racks(racks_a_zone=1), a_gang(1, "rack"), excluded={("a", "1"): "failed before"})
    found = refusal_reason(answer, LEVELS)
    assert (found.code, "failed before" in found.message) == (Code.PREVIOUS_ATTEMPT_FAILED, True)


@pytest.mark.parametrize(
    ("excluded", "code"),
    [({}, Code.INSUFFICIENT_RESOURCES), ({("a", "2"): "failed"}, Code.PREVIOUS_ATTEMPT_FAILED)],
    ids=["full", "failed"],
)
def test_bound_pods_leave_the_reason_of_their_domain(excluded, code):
    gang = Unit("gang", "rack", "", (), (*pods("b", 1, node="a-2-1"), *pods("p", 2)))
    answer = refuse(racks(), gang, {"a-2-1": used(8)}, excluded=excluded)
    assert refusal_reason(answer, LEVELS).code is code


def test_bound_pods_are_the_reason_if_there_is_no_other():
    shortage = Shortage(Reason.BOUND_ELSEWHERE, have=1)
    answer = NoFit((one_shortage(("a", "1"), "gang", shortage),), 1, None)
    assert refusal_reason(answer, LEVELS).code is Code.BOUND_ELSEWHERE


def test_stopped_search_has_a_code_of_its_own():
    assert refusal_reason(GaveUp(5), LEVELS).code is Code.SOLVER_GAVE_UP


def test_evidence_has_counts_of_each_domain():
    nodes = with_first(racks(), taints=MAINTENANCE)
    found = refusal_reason(refuse(nodes, a_gang(2, "rack"), {"a-2-1": used(4)}), LEVELS)
    rows = {(each.where, each.code, each.subject, each.nodes, each.of_nodes) for each in found.evidence}
    assert ("rack a/1", Code.NODE_TAINT, "maintenance", 1, 2) in rows
    assert ("rack a/2", Code.INSUFFICIENT_RESOURCES, GPU, 1, 2) in rows
    (short,) = (each for each in found.evidence if each.where == "rack a/2" and each.nodes)
    assert (short.have, short.need) == (12, 16)


def test_nodes_to_uncordon_are_counted_with_their_room():
    nodes = with_first(TWO_NODES, unschedulable=True)
    found = refusal_reason(refuse(nodes, a_gang(3, shape=a_shape(4)), {"a-1-2": used(4)}), LEVELS)
    (cordoned,) = (each for each in found.evidence if each.code is Code.NODE_CORDONED)
    assert (cordoned.nodes, cordoned.have, cordoned.need) == (1, 2, 3)


@pytest.mark.parametrize(
    ("nodes", "gang", "words"),
    [
        (with_first(TWO_NODES, taints=MAINTENANCE), a_gang(2), "maintenance"),
        (TWO_NODES, a_gang(2, shape=a_shape(node_selector={"pool": "x"})), "pool"),
        (TWO_NODES, a_gang(shape=NO_SUCH_RESOURCE), "no node has example.com/none"),
        ([a_node("a//n")], a_gang(1, "rack"), "label nodes with rack"),
    ],
    ids=["taint", "selector", "resource", "label"],
)
def test_remedy_names_what_to_change(nodes, gang, words):
    assert words in refusal_reason(refuse(nodes, gang), LEVELS).advice


def test_message_shows_a_few_shortages_of_a_domain():
    shortages = tuple(Shortage(Reason.TAINT, 1, f"taint-{number}") for number in range(1000))
    report = replace(one_shortage(("a", "1"), "gang", shortages[0]), shortages=shortages)
    found = refusal_reason(NoFit((report,), 1, None), LEVELS)
    assert found.message.endswith("1 node with taint taint-2 and 997 more")
    assert len(found.evidence) == 1000


def test_domain_is_named_by_its_level():
    assert domain_name((), LEVELS) == "the cluster"
    assert domain_name(("a", "r3"), ("example.com/zone", "example.com/rack")) == "rack a/r3"
