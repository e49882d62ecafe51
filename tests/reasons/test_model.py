"""The order of reasons, their lines, and the roll-up of many gangs."""

from __future__ import annotations

import re

import pytest

from grove.api.conditions import ComputeDomainsReason, EnforcementReason, GangReason, UpdateReason
from grove.api.event_reasons import EventReason
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.codes import rank
from grove.reasons.model import Evidence, ObjectName, WaitReason, first, ranked
from grove.reasons.rollup import NOTHING, combined, of_gangs
from grove.reasons.texts import REMEDIES, SUMMARIES

GANG = ObjectName("PodGang", "chat-0")


@pytest.mark.parametrize("code", Code)
def test_each_code_has_a_summary_and_a_remedy(code):
    assert re.fullmatch(r"[A-Z][A-Za-z]+", code)
    for text in (SUMMARIES[code], REMEDIES[code]):
        assert text == text.strip(" .")
        assert len(text) < 120


@pytest.mark.parametrize(
    ("code", "known"),
    [
        (Code.TERMINATION_BUDGET_SPENT, GangReason.BUDGET_SPENT),
        (Code.ONE_MEMBER_POD_PER_NODE, GangReason.ONE_MEMBER_POD_PER_NODE),
        (Code.TOPOLOGY_LABEL_MISSING, GangReason.LABEL_MISSING),
        (Code.RELEASED_IN_PART, GangReason.RELEASED_IN_PART),
        (Code.SCHEDULER_OBJECT_FAILED, EnforcementReason.OBJECT_FAILED),
        (Code.SCHEDULER_NOT_CONFIGURED, EnforcementReason.NOT_CONFIGURED),
        (Code.CONSTRAINTS_DROPPED, EnforcementReason.DROPPED),
        (Code.TOPOLOGY_LEVELS_UNAVAILABLE, EnforcementReason.LEVELS_UNAVAILABLE),
        (Code.COMPUTE_DOMAIN_CRD_MISSING, ComputeDomainsReason.CRD_MISSING),
        (Code.COMPUTE_DOMAIN_TERMINATING, ComputeDomainsReason.TERMINATING),
        (Code.COMPUTE_DOMAIN_CONFLICT, EventReason.COMPUTE_DOMAIN_CONFLICT),
        (Code.COMPUTE_DOMAIN_FAILED, EventReason.COMPUTE_DOMAIN_FAILED),
        (Code.IMEX_CHANNEL_BUSY, EventReason.IMEX_CHANNEL_BUSY),
        (Code.POD_LIMIT_EXCEEDED, EventReason.POD_LIMIT_EXCEEDED),
        (Code.DECODE_FAILED, EventReason.DECODE_FAILED),
        (Code.NAME_CONFLICT, ComputeDomainsReason.NAME_CONFLICT),
        (Code.PROGRESS_DEADLINE_EXCEEDED, UpdateReason.PROGRESS_DEADLINE_EXCEEDED),
    ],
)
def test_code_of_a_known_fact_has_its_known_name(code, known):
    assert code.value == known.value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Code.NO_OPERATOR_LEADING, Code.QUOTA_EXCEEDED),
        (Code.QUOTA_EXCEEDED, Code.INSUFFICIENT_RESOURCES),
        (Code.INSUFFICIENT_RESOURCES, Code.IMAGE_PULL_FAILED),
        (Code.SCHEDULER_MESSAGE, Code.IMAGE_PULL_FAILED),
        (Code.IMAGE_PULL_FAILED, Code.INIT_CONTAINER_WAITS),
        (Code.CONTAINER_CRASHING, Code.TERMINATION_BUDGET_SPENT),
        (Code.INSUFFICIENT_RESOURCES, Code.BASE_GANG_NOT_SCHEDULED),
    ],
)
def test_cause_has_a_smaller_rank_than_what_follows(before, after):
    assert rank(before) < rank(after)
    assert first([WaitReason(after), WaitReason(before)]) == WaitReason(before)


def test_ranked_reasons_have_no_duplicates():
    crash, quota = WaitReason(Code.CONTAINER_CRASHING), WaitReason(Code.QUOTA_EXCEEDED)
    assert ranked([crash, quota, crash]) == [quota, crash]


def test_equal_codes_are_ranked_by_their_age():
    old, new = WaitReason(Code.POD_FAILED, since=1.0), WaitReason(Code.POD_FAILED, since=2.0)
    assert ranked([new, old]) == [old, new]


def test_stable_line_has_no_evidence():
    evidence = Evidence(Code.NODE_TAINT, "rack r1", nodes=2)
    found = WaitReason(Code.NODE_TAINT, "2 nodes with taint x", GANG, (evidence,))
    assert found.line.startswith("PodGang chat-0: 2 nodes with taint x; ")
    assert "2" not in found.stable_line
    assert found.stable_line.startswith("PodGang chat-0: ")


def test_roll_up_shows_the_first_and_counts_the_others():
    def gang(number: int, code: Code) -> WaitReason:
        return WaitReason(code, "found", ObjectName("PodGang", f"chat-{number}"))

    waiting = [gang(0, Code.BASE_GANG_NOT_SCHEDULED), gang(1, Code.NODE_TAINT), gang(2, Code.NODE_TAINT)]
    found = of_gangs(waiting)
    assert found.first == waiting[1]
    assert found.line.endswith("; and 2 more gangs: 1 NodeTaint, 1 BaseGangNotScheduled")
    assert combined([of_gangs(waiting[:1]), NOTHING, of_gangs(waiting[1:])]) == found


def test_roll_up_of_many_codes_has_a_bounded_length():
    found = of_gangs([WaitReason(code, "x" * 500, GANG) for code in Code])
    assert len(found.line) < 1000
    assert f" and {len(Code) - 4} more" in found.line


def test_roll_up_of_one_gang_counts_no_others():
    assert of_gangs([WaitReason(Code.NODE_TAINT, "found", GANG)]).line.count("more") == 0
    assert of_gangs([]) == NOTHING
