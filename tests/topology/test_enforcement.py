"""The condition `TopologyConstraintsEnforced` in every case."""

from __future__ import annotations

import pytest

from grove.api.conditions import EnforcementReason
from grove.topology.enforcement import EnforcementFacts, combined, enforcement

ROWS = [
    ({}, "True", "EnforcedByScheduler", "kai is given the constraints"),
    ({"placed": True}, "True", "EnforcedByPlacement", "The operator chooses nodes by the constraints"),
    ({"levels": "no rack"}, "False", "TopologyLevelsUnavailable", "no rack"),
    ({"unconfigured": "not listed"}, "False", "SchedulerNotConfigured", "not listed"),
    ({"dropped": "gate"}, "False", "ConstraintsDroppedByAPIServer", "gate"),
    ({"failed": "no CRD"}, "False", "SchedulerObjectFailed", "no CRD"),
    ({"unsupported": "cannot"}, "False", "UnsupportedByScheduler", "cannot"),
    ({"unmet": "two racks", "placed": True}, "False", "RequiredDomainsNotMet", "two racks"),
    ({"levels": "no rack", "unmet": "two racks"}, "False", "TopologyLevelsUnavailable", "no rack"),
    ({"dropped": "gate", "failed": "gate"}, "False", "ConstraintsDroppedByAPIServer", "gate"),
]


@pytest.mark.parametrize(("facts", "status", "reason", "message"), ROWS)
def test_condition_by_obstacles(facts, status, reason, message):
    found = enforcement(EnforcementFacts("kai", **facts))
    assert (found.type, found.status) == ("TopologyConstraintsEnforced", status)
    assert (found.reason, found.message) == (reason, message)


def test_every_reason_occurs():
    assert {row[2] for row in ROWS} == set(EnforcementReason)


def test_first_part_that_is_not_enforced_decides():
    good, bad, worse = (
        enforcement(EnforcementFacts("kai", unmet=unmet)) for unmet in ("", "two racks", "three racks")
    )
    assert combined([]) is None
    assert combined([good, good]) is good
    assert combined([good, bad, worse]) is bad
