"""When statuses are written: changes together after a delay, regressions at once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.intents import ObjectRef, Target
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.api.types.podclique import PodCliqueStatus, PodCliqueUpdateProgress
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSetStatus
from grove.api.types.podgang import GangPhase, PodGangStatus
from grove.operator.engine.status_publisher import status_writes
from grove.plan.model import PlannedEvent, StatusUpdate
from tests.operator.engine.publishing import (
    TARGET,
    Publisher,
    due_after,
    starting_group,
    status,
    status_update,
)


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


def test_equal_status_is_not_written(publisher) -> None:
    assert due_after(publisher, status_update(status(1), status(1)), 0.0) == (False, None)


def test_changed_status_is_due_after_quiet_period(publisher) -> None:
    changed = status_update(status(0), status(1))
    assert due_after(publisher, changed, 10.0) == (False, 10.25)
    assert due_after(publisher, changed, 10.1) == (False, 10.25)
    assert due_after(publisher, changed, 10.25) == (True, None)


def test_changing_status_is_due_after_two_seconds(publisher) -> None:
    times = [(0.0, 0.25), (0.2, 0.45), (0.4, 0.65), (0.6, 0.85), (0.8, 1.05), (1.9, 2.0)]
    for ready, (now, due) in enumerate(times, start=1):
        written, later = due_after(publisher, status_update(status(0), status(ready)), now)
        assert not written
        assert later == pytest.approx(due)
    assert due_after(publisher, status_update(status(0), status(9)), 2.0) == (True, None)


def many_pending(publisher: Publisher, size: int, now: float = 0.0) -> list[str]:
    keys = [f"other-{number}" for number in range(size)]
    for key in keys:
        publisher.due_updates(key, (status_update(status(0), status(1)),), now, busy=False)
    return keys


def test_starting_status_waits_longer_with_many_pending(publisher) -> None:
    many_pending(publisher, 99)
    assert due_after(publisher, starting_group(), 0.0) == (False, 2.0)
    pending = many_pending(publisher, 2000, 0.5)
    assert due_after(publisher, starting_group(), 1.0) == (False, 10.0), "but not for ever"
    for key in pending[99:]:
        publisher.forget(key)
    assert due_after(publisher, starting_group(), 1.0) == (True, None), "forgotten keys are not pending"


def test_deferred_keys_do_not_count_as_pending(publisher) -> None:
    pending = many_pending(publisher, 2000)
    assert due_after(publisher, starting_group(), 0.0) == (False, 10.0)
    for key in pending:
        publisher.defer(key)
    assert due_after(publisher, starting_group(), 0.25) == (True, None)
    many_pending(publisher, 2000)
    assert due_after(publisher, starting_group(), 1.0) == (False, 11.0), "after their next pass they are"
    for key in pending:
        publisher.defer(key)
        publisher.forget(key)
    assert due_after(publisher, starting_group(), 1.25) == (True, None)


def test_ready_status_is_not_delayed_by_many_pending(publisher) -> None:
    many_pending(publisher, 2000)
    assert due_after(
        publisher, status_update(status(0), PodCliqueStatus(replicas=1, ready_replicas=1)), 0.0
    ) == (
        False,
        0.25,
    )


def test_status_with_error_is_not_delayed_by_many_pending(publisher) -> None:
    many_pending(publisher, 2000)
    error = LastError(code="ERR_POD_CREATE", description="exceeded quota", observed_at="")
    found = status_update(status(), PodCliqueStatus(replicas=2, ready_replicas=1, last_errors=(error,)))
    assert due_after(publisher, found, 0.0) == (False, 0.25)


@pytest.mark.parametrize(
    ("desired", "waits"),
    [
        (PodCliqueScalingGroupStatus(replicas=2, available_replicas=1), 10.0),
        (PodCliqueScalingGroupStatus(replicas=2, available_replicas=2), 0.25),
        (PodGangStatus(phase=GangPhase.STARTING.value), 10.0),
        (PodGangStatus(phase=GangPhase.RUNNING.value), 0.25),
        (PodCliqueSetStatus(replicas=500, available_replicas=1), 0.25),
    ],
)
def test_delay_with_many_pending_depends_on_kind_and_phase(publisher, desired, waits) -> None:
    many_pending(publisher, 2000)
    before = replace(desired, conditions=(Condition(type="Former", status="True"),))
    found = StatusUpdate(TARGET, before, desired)
    assert due_after(publisher, found, 0.0) == (False, waits)


def test_changing_status_is_due_at_max_delay_with_many_pending(publisher) -> None:
    many_pending(publisher, 2000)
    for second in range(20):
        assert due_after(publisher, starting_group(second), float(second))[0] is False
    assert due_after(publisher, starting_group(50), 20.0) == (True, None)


def test_changed_timestamp_alone_does_not_restart_delay(publisher) -> None:
    first = status_update(status(0), status(1, breached=False, at="2026-01-01T00:00:01Z"))
    again = status_update(status(0), status(1, breached=False, at="2026-01-01T00:00:02Z"))
    assert due_after(publisher, first, 0.0) == (False, 0.25)
    assert due_after(publisher, again, 0.2) == (False, 0.25)


def test_min_available_breach_is_written_at_once(publisher) -> None:
    breach = status_update(status(2, breached=False), status(0, breached=True))
    assert due_after(publisher, breach, 0.0, busy=True) == (True, None)


def test_breach_of_new_clique_waits_for_quiet_period(publisher) -> None:
    assert due_after(publisher, status_update(status(), status(0, breached=True)), 0.0) == (False, 0.25)


def test_breach_by_update_waits_for_quiet_period(publisher) -> None:
    breach = replace(status_update(status(2, breached=False), status(0, breached=True)), updating=True)
    assert due_after(publisher, breach, 0.0) == (False, 1.0)
    assert due_after(publisher, breach, 1.0) == (True, None)


def test_changing_status_of_update_is_due_after_two_seconds(publisher) -> None:
    for ready, now in enumerate((0.0, 0.8, 1.6), start=1):
        changed = replace(status_update(status(0), status(ready)), updating=True)
        assert due_after(publisher, changed, now) == (False, min(now + 1.0, 2.0))
    assert due_after(publisher, changed, 2.0) == (True, None)


UPDATE = PodCliqueUpdateProgress(
    update_started_at="2026-01-01T00:00:00Z", pod_clique_set_generation_hash="h", pod_template_hash="t"
)


def ended() -> StatusUpdate:
    """An update that ends."""
    before = PodCliqueStatus(update_progress=UPDATE)
    after = replace(UPDATE, update_ended_at="2026-01-01T00:01:00Z")
    return status_update(before, replace(before, ready_replicas=1, update_progress=after))


def test_end_of_update_does_not_publish_pods_being_replaced(publisher) -> None:
    own, other = ended(), replace(status_update(status(1), status(0)), updating=True)
    due, later = publisher.due_updates("key", (own, other), 0.0, busy=False)
    assert (due, later) == ([own], 1.0)
    assert publisher.due_updates("key", (other,), 0.1, busy=False) == ([], 1.0), "its time does not change"
    assert publisher.due_updates("key", (other,), 1.0, busy=False) == ([other], None)


def test_end_of_last_update_is_written_with_all_others(publisher) -> None:
    own, other = ended(), status_update(status(0), status(1))
    assert publisher.due_updates("key", (other, own), 0.0, busy=False) == ([other, own], None)


def test_end_of_update_is_written_while_no_slot_is_free(publisher) -> None:
    own, other = ended(), replace(status_update(status(1), status(0)), updating=True)
    publisher.due_updates("key", (other,), 0.0, busy=True)
    assert publisher.due_updates("key", (own, other), 1.0, busy=True) == ([own], 20.0)


def test_reverted_change_is_forgotten(publisher) -> None:
    due_after(publisher, status_update(status(0), status(1)), 0.0)
    assert due_after(publisher, status_update(status(0), status(0)), 0.1) == (False, None)
    assert due_after(publisher, status_update(status(0), status(1)), 5.0) == (False, 5.25)


def test_status_write_carries_resource_version() -> None:
    (write,) = status_writes([replace(status_update(status(0), status(1)), resource_version="7")])
    assert write.body["metadata"] == {"resourceVersion": "7"}


def test_status_write_has_required_fields() -> None:
    (write,) = status_writes([status_update(PodCliqueStatus(), status(1))])
    assert {"readyReplicas", "scheduledReplicas", "updatedReplicas"} <= set(write.body["status"])


GANG = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-0", "ns")


def waiting(message: str, placed: str = "False", clique: str = "a") -> PodGangStatus:
    condition = Condition(
        type=ConditionType.SCHEDULED,
        status=placed,
        reason="PodGroupsNotScheduled",
        message=f"Too few pods scheduled in {clique}; volcano says: {message}",
        last_transition_time="2026-01-01T00:00:00Z",
    )
    return PodGangStatus(phase="Pending", conditions=(condition,))


def test_changing_scheduler_message_is_written_with_backoff(publisher) -> None:
    published, written = waiting("first"), []
    for now in range(300):
        statuses = waiting(f"{now}/300 nodes are available")
        written_now, later = due_after(publisher, StatusUpdate(GANG, published, statuses), float(now))
        assert written_now is (later is None)
        if written_now:
            published = statuses
            written.append(now)
    assert written == [2, 6, 14, 30, 62, 122, 182, 242]


def test_message_is_written_with_other_changes_of_its_gang(publisher) -> None:
    before, after = waiting("no room"), waiting("all placed", placed="True")
    assert due_after(publisher, StatusUpdate(GANG, before, waiting("no room at all")), 0.0) == (False, 2.0)
    assert due_after(publisher, StatusUpdate(GANG, before, after), 1.0) == (False, 1.25)
    assert due_after(publisher, StatusUpdate(GANG, before, after), 1.25) == (True, None)


def test_other_message_is_not_written_with_another_object(publisher) -> None:
    message_only = StatusUpdate(GANG, waiting("no room"), waiting("no room at all"))
    changed = status_update(status(0), status(1))
    assert publisher.due_updates("key", (message_only, changed), 0.0, busy=False) == ([], 0.25)
    assert publisher.due_updates("key", (message_only, changed), 0.25, busy=False) == ([changed], 2.0)
    assert publisher.due_updates("key", (message_only,), 2.0, busy=False) == ([message_only], None)


def test_own_message_of_gang_is_not_backed_off(publisher) -> None:
    assert due_after(publisher, StatusUpdate(GANG, waiting("no"), waiting("no", clique="b")), 0.0) == (
        False,
        0.25,
    )


def test_scheduler_message_waits_for_slots_and_is_not_pending(publisher) -> None:
    for key in range(1000):
        publisher.due_updates(key, (StatusUpdate(GANG, waiting("a"), waiting("b")),), 0.0, busy=True)
    assert due_after(publisher, status_update(status(0), status(1)), 0.0) == (False, 0.25)
    due, later = publisher.due_updates(7, (StatusUpdate(GANG, waiting("a"), waiting("b")),), 2.0, busy=True)
    assert (due, later) == ([], 12.0)
    due, later = publisher.due_updates(7, (StatusUpdate(GANG, waiting("a"), waiting("b")),), 12.0, busy=False)
    assert (len(due), later) == (1, None)


def test_message_of_clique_is_not_backed_off(publisher) -> None:
    condition = Condition(type=ConditionType.CLIQUE_SCHEDULED, status="False", reason="R")
    statuses = [PodCliqueStatus(conditions=(replace(condition, message=text),)) for text in ("a", "b")]
    assert due_after(publisher, status_update(*statuses), 0.0) == (False, 0.25)


MOMENTARY = "BaseGangNotScheduled"


def with_reason(known: PodCliqueStatus, code: str, message: str = "") -> PodCliqueStatus:
    condition = Condition(ConditionType.WAITING, "True", code, message)
    return replace(known, conditions=(*known.conditions, condition))


def test_new_reason_is_written_once_it_lasts(publisher) -> None:
    found = status_update(status(0), with_reason(status(0), "NodeTaint"))
    assert due_after(publisher, found, 10.0) == (False, 12.0)
    assert due_after(publisher, found, 11.9) == (False, 12.0)
    assert due_after(publisher, found, 12.0) == (True, None)


def test_reason_that_was_short_is_never_written(publisher) -> None:
    found = status_update(status(0), with_reason(status(0), "NodeTaint"))
    assert due_after(publisher, found, 0.0) == (False, 2.0)
    assert due_after(publisher, status_update(status(0), status(0)), 1.0) == (False, None)
    assert due_after(publisher, found, 1.5) == (False, 3.5)


def test_other_change_is_written_without_momentary_reason(publisher) -> None:
    event = PlannedEvent(ObjectRef("grove.io/v1alpha1", "PodClique", "wl-0-a", "ns"), MOMENTARY, "why")
    other = replace(event, reason="AllScheduledReplicasLost")
    found = replace(status_update(status(0), with_reason(status(1), MOMENTARY)), events=(event, other))
    assert due_after(publisher, found, 0.0) == (False, 0.25)
    expected = replace(status_update(status(0), status(1)), events=(other,))
    assert publisher.due_updates("key", (found,), 0.25, busy=False) == ([expected], 2.0)
    rest = status_update(status(1), with_reason(status(1), MOMENTARY))
    assert due_after(publisher, rest, 2.0) == (True, None)


def test_momentary_reason_that_lasts_is_written_with_others(publisher) -> None:
    found = status_update(status(0), with_reason(status(0), MOMENTARY))
    assert due_after(publisher, found, 0.0) == (False, 2.0)
    both = status_update(status(0), with_reason(status(1), MOMENTARY))
    assert due_after(publisher, both, 1.9) == (False, 2.0)
    assert publisher.due_updates("key", (both,), 2.2, busy=False) == ([both], None)


@pytest.mark.parametrize("interval", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("other_first", [0.0, 0.05, 1.0])
def test_momentary_reason_of_a_changing_status_is_written(publisher, interval, other_first) -> None:
    stored, ready, now, next_pod = status(0), 0, 0.0, other_first
    while now < 5.0:
        if now >= next_pod:
            ready, next_pod = ready + 1, next_pod + interval
        found = status_update(stored, with_reason(status(ready), MOMENTARY))
        due, later = publisher.due_updates("key", (found,), now, busy=False)
        if due:
            stored = due[0].desired
        if stored.conditions:
            return
        now = min(next_pod, later if later is not None else next_pod)
    pytest.fail("the reason has lasted for 5 s and is not written")


def test_reason_that_is_written_delays_the_next_one(publisher) -> None:
    other = replace(TARGET, name="wl-0-b")
    first = status_update(status(0), with_reason(status(0), "NodeTaint"))
    assert due_after(publisher, first, 0.0) == (False, 2.0)
    assert due_after(publisher, first, 2.0) == (True, None)
    second = StatusUpdate(other, status(0), with_reason(status(0), MOMENTARY))
    assert due_after(publisher, second, 2.1) == (False, 4.1)


def test_other_reason_is_written_with_another_change(publisher) -> None:
    found = status_update(status(0), with_reason(status(1), "NodeTaint"))
    assert due_after(publisher, found, 0.0) == (False, 0.25)
    assert publisher.due_updates("key", (found,), 0.25, busy=False) == ([found], None)


def test_obsolete_reason_goes_with_another_change(publisher) -> None:
    found = status_update(with_reason(status(0), "NodeTaint"), status(1))
    assert due_after(publisher, found, 0.0) == (False, 0.25)
    assert publisher.due_updates("key", (found,), 0.25, busy=False) == ([found], None)


def test_obsolete_reason_alone_goes_after_two_seconds(publisher) -> None:
    found = status_update(with_reason(status(0), "NodeTaint"), status(0))
    assert due_after(publisher, found, 0.0) == (False, 2.0)
    assert due_after(publisher, found, 2.0) == (True, None)


def test_another_code_replaces_the_stored_one_later(publisher) -> None:
    found = status_update(with_reason(status(0), "NodeTaint"), with_reason(status(0), "NodeCordoned"))
    for start in (0.0, 10.0, 20.0):
        assert due_after(publisher, found, start) == (False, start + 2.0)
        assert due_after(publisher, found, start + 2.0) == (True, None)


def test_alternating_code_replaces_another_with_back_off(publisher) -> None:
    full = with_reason(status(0), "InsufficientResources")
    found = status_update(full, with_reason(status(0), "ReservedByOtherGang"))
    for start, due in ((0.0, 2.0), (2.1, 6.0)):
        assert due_after(publisher, found, start) == (False, due)
        assert due_after(publisher, found, due) == (True, None)


def test_alternating_code_comes_with_another_change(publisher) -> None:
    full = with_reason(status(0), "InsufficientResources")
    found = status_update(full, with_reason(status(1), "ReservedByOtherGang"))
    new = StatusUpdate(replace(TARGET, name="wl-0-b"), status(0), with_reason(status(0), "NodeTaint"))
    assert publisher.due_updates("key", (found, new), 0.0, busy=False) == ([], 0.25)
    assert publisher.due_updates("key", (found, new), 0.25, busy=False) == ([found], 2.0)


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        ("InsufficientResources", "InitContainerWaitsForClique"),
        ("NodeTaint", "ReservedByOtherGang"),
        ("ReservedByOtherGang", "InsufficientResources"),
        ("InitContainerWaitsForClique", MOMENTARY),
    ],
)
def test_code_that_does_not_alternate_replaces_another_soon(publisher, stored, new) -> None:
    found = status_update(with_reason(status(0), stored), with_reason(status(0), new))
    for start in (0.0, 10.0, 20.0):
        assert due_after(publisher, found, start) == (False, start + 2.0)
        assert due_after(publisher, found, start + 2.0) == (True, None)


@pytest.mark.parametrize("stored", ["NodeTaint", "InsufficientResources"])
def test_obsolete_reason_goes_before_a_momentary_one_comes(publisher, stored) -> None:
    found = status_update(with_reason(status(0), stored), with_reason(status(1), MOMENTARY))
    assert due_after(publisher, found, 0.0) == (False, 0.25)
    without = status_update(found.current, status(1))
    assert publisher.due_updates("key", (found,), 0.25, busy=False) == ([without], 2.0)
    rest = status_update(status(1), with_reason(status(1), MOMENTARY))
    assert due_after(publisher, rest, 2.0) == (True, None)


def test_message_of_a_reason_is_backed_off(publisher) -> None:
    stored = with_reason(status(0), "NodeTaint", "1 node")
    for start, due in ((0.0, 2.0), (2.1, 6.0)):
        found = status_update(stored, with_reason(status(0), "NodeTaint", "2 nodes"))
        assert due_after(publisher, found, start) == (False, due)
        assert due_after(publisher, found, due) == (True, None)


def test_reason_waits_for_free_slots(publisher) -> None:
    found = status_update(status(0), with_reason(status(0), "NodeTaint"))
    assert due_after(publisher, found, 0.0, busy=True) == (False, 2.0)
    assert due_after(publisher, found, 2.0, busy=True) == (False, 20.0)
    assert publisher.release(1) == ["key"]
    assert due_after(publisher, found, 3.0) == (True, None)
