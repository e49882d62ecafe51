"""When the placement of a gang is written to its status."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.meta import Condition, ObjectMeta
from grove.api.naming import annotations as keys
from grove.api.types.pod import Pod
from grove.api.types.podgang import (
    GangPlacement,
    NamespacedName,
    PodGang,
    PodGangSpec,
    PodGangStatus,
    PodGroup,
)
from grove.plan.gang.placement_status import PlacementStatus
from grove.plan.placement.assignment import Assignment, Placements, PodSlot, to_annotation
from grove.plan.snapshot import Snapshot
from grove.topology.constraints import ResolvedTopology
from tests.plan.builders import a_set, read_set

GANG = PodGang(
    metadata=ObjectMeta("gang"), spec=PodGangSpec((PodGroup("a", (NamespacedName("ns", "a0"),), 1),))
)
PODS = tuple(
    msgspec.convert({"metadata": {"name": name}, "spec": {"nodeName": node}}, Pod)
    for name, node in (("a0", "n1"), ("other", ""))
)
LISTED = {"n1": {"rack": "r1"}}
WRITTEN = GangPlacement(required_met=True, preferred_met=True)
STALE = GangPlacement("old")


def condition(status: str) -> tuple[Condition, ...]:
    return (Condition(type="Scheduled", status=status, reason="", message=""),)


@pytest.mark.parametrize(
    ("placed", "labels", "scheduled", "known", "expected"),
    [
        (True, LISTED, "True", None, WRITTEN),
        (True, LISTED, "False", None, None),  # the write that says Scheduled follows
        (True, LISTED, "False", STALE, WRITTEN),
        (True, LISTED, "True", STALE, WRITTEN),
        (True, None, "True", None, None),  # nodes are not listed yet
        (True, None, "True", STALE, STALE),
        (True, {}, "True", STALE, None),  # the node is gone
        (False, LISTED, "True", None, None),
        (False, LISTED, "True", STALE, None),  # placement was switched off
    ],
)
def test_placement_in_the_status_of_a_gang(
    placed: bool,
    labels: dict[str, dict[str, str]] | None,
    scheduled: str,
    known: GangPlacement | None,
    expected: GangPlacement | None,
) -> None:
    snapshot = Snapshot(read_set(a_set("a")), 0, pods=PODS, placements=Placements(node_labels=labels))
    status = PodGangStatus(
        conditions=condition(scheduled), placement=known, placement_score=0.5 if known else None
    )
    found = PlacementStatus(snapshot, {"gang": None} if placed else {}, 0.0).added(GANG, status)
    assert found.placement == expected
    assert found.conditions == status.conditions
    score = {WRITTEN: 1.0, STALE: 0.5}.get(expected) if expected is not None else None
    assert found.placement_score == score


def test_placement_switched_off_is_removed() -> None:
    status = PodGangStatus(placement=STALE, placement_score=0.5)
    found = PlacementStatus(Snapshot(read_set(a_set("a")), 0, pods=PODS), {}, 0.0).added(GANG, status)
    assert found == PodGangStatus()


def test_placement_by_fallback_has_its_index_and_topology() -> None:
    assignment = Assignment(attempt=2, nodes={PodSlot("a", 0): "n1"})
    metadata = ObjectMeta("gang", annotations={keys.PLACEMENT: to_annotation(assignment)})
    snapshot = Snapshot(
        read_set(a_set("a")),
        0,
        pods=PODS,
        placements=Placements(node_labels=LISTED),
        topology=ResolvedTopology("own"),
        fallback_topologies=(ResolvedTopology("first"), ResolvedTopology("second")),
    )
    status = PodGangStatus(conditions=condition("True"))
    statuses = PlacementStatus(snapshot, {"gang": None}, 0.0)
    found = statuses.added(replace(GANG, metadata=metadata), status).placement
    assert found is not None
    assert (found.topology_name, found.fallback) == ("second", 1)
