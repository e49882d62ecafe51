"""The topology of a set in the views."""

from __future__ import annotations

import pytest

from grove.views.topology_view import topology_view
from tests.plan.builders import a_set, read_set

CONSTRAINT = {"topologyName": "racks", "pack": {"required": "rack"}}
LEVELS = {"type": "TopologyLevelsUnavailable", "reason": "R", "message": "no level"}
ENFORCED = {"type": "TopologyConstraintsEnforced", "reason": "R", "message": "spread over racks"}


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ([], ""),
        ([{**LEVELS, "status": "False"}, {**ENFORCED, "status": "True"}], ""),
        ([{**LEVELS, "status": "True"}, {**ENFORCED, "status": "False"}], "no level"),
        ([{**LEVELS, "status": "False"}, {**ENFORCED, "status": "False"}], "spread over racks"),
    ],
)
def test_problem_is_that_of_the_levels_or_of_the_enforcement(conditions, problem) -> None:
    body = a_set("a", topologyConstraint=CONSTRAINT)
    body["status"] = {"conditions": conditions}
    found = topology_view(read_set(body))
    assert found is not None
    assert found.problem == problem
