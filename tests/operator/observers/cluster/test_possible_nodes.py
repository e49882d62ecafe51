"""Whether pods of others could be bound to a node: labels that are not kept count as matching."""

from __future__ import annotations

import pytest

from grove.operator.observers.cluster.possible_nodes import may_run
from grove.topology.placement.model import Node, PodShape, Requirement, Taint, Term, Toleration

NODE = Node("a", {"zone": "z"}, {"cpu": 1})


ANOTHER = (Requirement("metadata.name", "In", ("b",)),)


def expressions(**wanted: str) -> Term:
    return Term(tuple(Requirement(key, "In", (value,)) for key, value in wanted.items()))


@pytest.mark.parametrize(
    ("shape", "possible"),
    [
        (PodShape({}), True),
        (PodShape({"cpu": 5}), True),
        (PodShape({}, {"zone": "z", "other": "x"}), True),
        (PodShape({}, {"zone": "y", "other": "x"}), False),
        (PodShape({}, affinity=(expressions(zone="y"),)), False),
        (PodShape({}, affinity=(expressions(zone="y"), expressions(zone="z", other="x"))), True),
        (PodShape({}, affinity=(expressions(zone="y"), expressions(other="x"))), True),
        (PodShape({}, affinity=(expressions(zone="y", other="x"),)), False),
        (PodShape({}, affinity=(Term(fields=ANOTHER),)), False),
        (PodShape({}, affinity=(Term(expressions(other="x").expressions, ANOTHER),)), False),
        (PodShape({}, affinity=(Term(), expressions(zone="y"))), False),
        (PodShape({}, affinity=()), False),
    ],
)
def test_pod_could_go_to_node_as_far_as_labels_say(shape, possible):
    assert may_run(shape, NODE, {"zone"}) is possible


def test_pod_cannot_go_to_node_with_a_taint():
    tainted = Node("a", taints=(Taint("k"),))
    assert not may_run(PodShape({}), tainted, ())
    assert may_run(PodShape({}, tolerations=(Toleration("k", "Exists"),)), tainted, ())
