"""The events of a set whose topology conditions change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.meta import Condition
from grove.api.types.podcliqueset import PodCliqueSetStatus
from grove.plan.status.topology_events import topology_events
from tests.plan.builders import a_set, read_set

LEVELS, ENFORCED = "TopologyLevelsUnavailable", "TopologyConstraintsEnforced"
AVAILABLE, LOST = "AllClusterTopologyLevelsAvailable", "ClusterTopologyNotFound"
INVERTED, PLACED, DROPPED = "ClusterTopologyLevelsInverted", "EnforcedByPlacement", "UnsupportedByScheduler"

ROWS = [
    # type; status and reason before, after; events
    (LEVELS, None, ("False", AVAILABLE), []),
    (LEVELS, None, ("True", LOST), [("TopologyLevelsUnavailable", True)]),
    (LEVELS, ("False", AVAILABLE), ("False", AVAILABLE), []),
    (LEVELS, ("False", AVAILABLE), ("True", LOST), [("TopologyLevelsUnavailable", True)]),
    (LEVELS, ("True", LOST), ("True", LOST), []),
    (LEVELS, ("True", LOST), ("Unknown", "TopologyNameMissing"), [("TopologyLevelsUnavailable", True)]),
    (LEVELS, ("True", LOST), ("False", AVAILABLE), [("TopologyLevelsAvailable", False)]),
    (LEVELS, ("False", AVAILABLE), ("False", INVERTED), [("TopologyLevelsInverted", True)]),
    (LEVELS, ("False", AVAILABLE), None, []),
    (ENFORCED, None, ("True", PLACED), []),
    (ENFORCED, None, ("False", DROPPED), [("TopologyConstraintsNotEnforced", True)]),
    (ENFORCED, ("True", PLACED), ("False", DROPPED), [("TopologyConstraintsNotEnforced", True)]),
    (ENFORCED, ("False", DROPPED), ("False", DROPPED), []),
    (ENFORCED, ("False", DROPPED), ("True", PLACED), [("TopologyConstraintsEnforced", False)]),
    (ENFORCED, ("True", PLACED), ("False", LEVELS), []),
    (ENFORCED, ("False", LEVELS), ("True", PLACED), []),
    (ENFORCED, ("False", LEVELS), ("False", DROPPED), [("TopologyConstraintsNotEnforced", True)]),
]


@pytest.mark.parametrize(("type_", "before", "after", "expected"), ROWS)
def test_event_by_change_of_condition(type_, before, after, expected):
    known, new = (
        (Condition(type_, each[0], reason=each[1], message=f"because {each[1]}"),) if each else ()
        for each in (before, after)
    )
    workload = replace(read_set(a_set("a")), status=PodCliqueSetStatus(conditions=known))
    events = topology_events(workload, PodCliqueSetStatus(conditions=new))
    assert [(each.reason, each.warning) for each in events] == expected
    assert all(each.note == f"because {after[1]}" for each in events)
