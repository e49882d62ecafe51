"""Why pods of a set wait: what its replicas report, its own errors and its update."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSetUpdateProgress
from grove.plan.model import ReplicaSummary
from grove.plan.status.set_waiting import early_reason, with_set_reason
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import ObjectName, WaitReason
from grove.reasons.rollup import of_gangs
from tests.plan.builders import a_set, read_set

SET = read_set(a_set("a:1"))
QUOTA = LastError("ERR_CREATE_POD", "exceeded quota: few", "2026-01-01T00:00:00Z")
HARMLESS = LastError("ERR_GET_PRIORITYCLASS", "there is no class", "2026-01-01T00:00:00Z")
TAINT = of_gangs([WaitReason(Code.NODE_TAINT, "2 nodes", ObjectName("PodGang", "wl-0"))])
CRASH = of_gangs([WaitReason(Code.CONTAINER_CRASHING, "exit code 1", ObjectName("Pod", "wl-1-a"))])
UPDATING = PodCliqueSetUpdateProgress(update_started_at="2026-01-01T00:00:00Z")


def waiting(*rollups, errors=(), workload=SET, stalled=0, progress=None, ready=False):
    status = replace(workload.status, last_errors=errors, update_progress=progress)
    summaries = [ReplicaSummary(waiting=each, stalled=stalled, ready=ready) for each in rollups]
    conditions = with_set_reason(status, workload, summaries, 0.0).conditions
    return next(((each.reason, each.message) for each in conditions if each.type == "Waiting"), None)


def test_set_shows_the_first_reason_of_its_replicas():
    code, message = waiting(CRASH, TAINT)
    assert code == "NodeTaint"
    assert message.startswith("PodGang wl-0: 2 nodes; ")
    assert message.endswith("; and 1 more gang: 1 ContainerCrashing")


def test_set_without_reasons_does_not_wait():
    assert waiting(of_gangs([])) is None


def test_reason_that_is_gone_is_removed():
    known = with_set_reason(SET.status, SET, [ReplicaSummary(waiting=TAINT)], 0.0)
    assert known.conditions
    assert with_set_reason(known, SET, [ReplicaSummary()], 1.0).conditions == ()


@pytest.mark.parametrize(("errors", "code"), [((QUOTA,), "QuotaExceeded"), ((HARMLESS,), "NodeTaint")])
def test_own_error_comes_before_what_gangs_wait_for(errors, code):
    assert waiting(TAINT, errors=errors)[0] == code


def an_error(code: str) -> LastError:
    return LastError(code, "it failed", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "code", ["ERR_SYNC_HPA", "ERR_SYNC_PODGROUP", "ERR_DELETE_POD", "ERR_SLOW_POD", "ERR_CREATE_POD"]
)
def test_error_is_no_reason_of_a_set_with_ready_pods(code):
    assert waiting(of_gangs([]), errors=(an_error(code),), ready=True) is None
    assert waiting(of_gangs([]), errors=(an_error(code),)) is not None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ERR_EXCEED_POD_LIMIT", "PodLimitExceeded"),
        ("ERR_EXCEED_PODGANG_SIZE", "PodGangSizeExceeded"),
        ("ERR_PLAN_PODCLIQUESET_REPLICA", "PlanFailed"),
        ("ERR_DECODE_OBJECT", "DecodeFailed"),
    ],
)
def test_error_of_plans_is_a_reason_though_pods_are_ready(code, expected):
    assert waiting(of_gangs([]), errors=(an_error(code),), ready=True)[0] == expected


@pytest.mark.parametrize(("paused", "expected"), [(True, "UpdatePaused"), (False, None)])
def test_update_that_is_paused_is_a_reason(paused, expected):
    strategy = replace(SET.spec.update_strategy, paused=paused)
    workload = replace(SET, spec=replace(SET.spec, update_strategy=strategy))
    found = waiting(of_gangs([]), workload=workload, progress=UPDATING)
    assert (found and found[0]) == expected


def test_update_that_is_overdue_is_a_reason():
    assert waiting(of_gangs([]), stalled=2)[0] == "ProgressDeadlineExceeded"


def test_early_errors_leave_other_reasons_as_they_are():
    known = with_set_reason(SET.status, SET, [ReplicaSummary(waiting=TAINT)], 0.0)
    assert early_reason(known, SET, 1.0) == known
    found = early_reason(replace(known, last_errors=(QUOTA,)), SET, 1.0)
    assert [each.reason for each in found.conditions] == ["QuotaExceeded"]
