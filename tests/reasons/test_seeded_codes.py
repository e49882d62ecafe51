"""Every code is shown on the real control plane, or it is said here why it is not."""

from __future__ import annotations

from grove.reasons.codes import ReasonCode as Code
from tests.cluster.reasons.causes import CAUSES
from tests.cluster.reasons.courses import COURSES, OF_SLOW_WRITES
from tests.cluster.reasons.fabric_causes import OF_FABRIC
from tests.cluster.reasons.test_operator_setup import IN_PART, OF_SETUP

ELSEWHERE = {
    Code.NO_OPERATOR_LEADING: "no condition: tests/cluster/cli/test_inspection.py asks the command",
    Code.TOPOLOGY_LEVELS_UNAVAILABLE: "no condition: test_courses.py finds it in what `grove explain` says",
    Code.START_ORDER_DISABLED: "needs an operator without them: process/test_fewest_rights.py has one",
    Code.IMEX_CHANNEL_BUSY: "where gangs are not placed: test_channels.py",
    Code.CLAIM_NOT_CREATED: "needs a driver that creates no templates: nvlink/test_conditions.py has one",
    Code.NODE_HELD_BY_OTHER_DOMAIN: "needs a driver that keeps labels: nvlink/test_conditions.py has one",
    Code.COMPUTE_DOMAIN_CRD_OUTDATED: "needs another CRD: nvlink/test_faults.py has one",
    Code.CONSTRAINTS_DROPPED: "needs a cluster without a feature gate: test_dropped_constraints.py has one",
}
"""Codes that other tests on the real control plane show."""
UNSEEDED = {
    Code.NAMESPACE_TERMINATING: "the set is deleted with its namespace, and with it the condition",
    Code.DECODE_FAILED: "no part of a set was found that schemas admit and that cannot be decoded",
    Code.PLAN_FAILED: "no set is known whose plan fails: that would be a defect",
    Code.WRITE_FAILED: "no refusal of an API server was found that has no narrower code",
    Code.BOUND_ELSEWHERE: "no cluster was found in which the domain of bound pods has no reason of its own",
    Code.SOLVER_GAVE_UP: "needs a search of a million evaluations",
}
"""Codes that no cause is known for that takes seconds; tables without a cluster have them."""


def test_each_code_is_seeded_or_says_why_not():
    causes = (*CAUSES, *COURSES, OF_SLOW_WRITES, *OF_FABRIC, *OF_SETUP, IN_PART)
    seeded = {each.code for each in causes} | {each.expected_of_gang for each in causes}
    assert not seeded & (ELSEWHERE.keys() | UNSEEDED.keys())
    assert seeded | ELSEWHERE.keys() | UNSEEDED.keys() == set(Code)
