"""When statuses are published: together, soon, and bad news at once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.intents import Target
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSetStatus
from grove.api.types.podgang import GangPhase, PodGangStatus
from grove.operator.engine.status_publisher import StatusPublisher, status_writes
from grove.plan.model import StatusUpdate

TARGET = Target("grove.io/v1alpha1", "PodClique", "wl-0-a", "ns")


def status(
    ready: int = 0, *, breached: bool | None = None, at: str = "2026-01-01T00:00:00Z"
) -> PodCliqueStatus:
    if breached is None:
        return PodCliqueStatus(ready_replicas=ready)
    fact = Condition(type=ConditionType.MIN_AVAILABLE_BREACHED, status=str(breached), last_transition_time=at)
    return PodCliqueStatus(ready_replicas=ready, conditions=(fact,))


def status_update(current: PodCliqueStatus, desired: PodCliqueStatus) -> StatusUpdate:
    return StatusUpdate(TARGET, current, desired)


@pytest.fixture
def publisher() -> StatusPublisher[str]:
    return StatusPublisher()


def due_after(publisher: StatusPublisher[str], found: StatusUpdate, now: float, *, busy: bool = False):
    due, later = publisher.due_updates("key", (found,), now, busy=busy)
    return bool(due), later


def test_what_is_told_already_is_not_told_again(publisher) -> None:
    assert due_after(publisher, status_update(status(1), status(1)), 0.0) == (False, None)


def test_news_wait_a_quarter_of_a_second(publisher) -> None:
    news = status_update(status(0), status(1))
    assert due_after(publisher, news, 10.0) == (False, 10.25)
    assert due_after(publisher, news, 10.1) == (False, 10.25)
    assert due_after(publisher, news, 10.25) == (True, None)


def test_further_news_are_waited_for_but_not_longer_than_two_seconds(publisher) -> None:
    moments = [(0.0, 0.25), (0.2, 0.45), (0.4, 0.65), (0.6, 0.85), (0.8, 1.05), (1.9, 2.0)]
    for ready, (now, due) in enumerate(moments, start=1):
        told, later = due_after(publisher, status_update(status(0), status(ready)), now)
        assert not told
        assert later == pytest.approx(due)
    assert due_after(publisher, status_update(status(0), status(9)), 2.0) == (True, None)


def many_pending(publisher: StatusPublisher[str], size: int, now: float = 0.0) -> list[str]:
    keys = [f"other-{number}" for number in range(size)]
    for key in keys:
        publisher.due_updates(key, (status_update(status(0), status(1)),), now, busy=False)
    return keys


def starting_group(ready: int = 0) -> StatusUpdate:
    return status_update(status(), PodCliqueStatus(replicas=99, ready_replicas=ready))


def test_who_is_on_the_way_is_listened_to_for_longer_the_more_there_is_to_tell(publisher) -> None:
    many_pending(publisher, 99)
    assert due_after(publisher, starting_group(), 0.0) == (False, 1.0)
    crowd = many_pending(publisher, 2000, 0.5)
    assert due_after(publisher, starting_group(), 1.0) == (False, 10.0), "but not for ever"
    for key in crowd[99:]:
        publisher.forget(key)
    assert due_after(publisher, starting_group(), 1.0) == (True, None), "and the crowd is who is there now"


def test_keys_that_wait_for_a_slow_write_are_no_crowd(publisher) -> None:
    crowd = many_pending(publisher, 2000)
    assert due_after(publisher, starting_group(), 0.0) == (False, 10.0)
    for key in crowd:
        publisher.defer(key)
    assert due_after(publisher, starting_group(), 0.25) == (True, None)
    many_pending(publisher, 2000)
    assert due_after(publisher, starting_group(), 1.0) == (False, 11.0), "considered again, they are"
    for key in crowd:
        publisher.defer(key)
        publisher.forget(key)
    assert due_after(publisher, starting_group(), 1.25) == (True, None)


def test_who_has_arrived_is_told_at_once_also_in_a_crowd(publisher) -> None:
    many_pending(publisher, 2000)
    assert due_after(
        publisher, status_update(status(0), PodCliqueStatus(replicas=1, ready_replicas=1)), 0.0
    ) == (
        False,
        0.25,
    )


def test_who_met_an_obstacle_is_told_at_once_also_in_a_crowd(publisher) -> None:
    many_pending(publisher, 2000)
    refused = LastError(code="ERR_POD_CREATE", description="exceeded quota", observed_at="")
    found = status_update(status(), PodCliqueStatus(replicas=2, ready_replicas=1, last_errors=(refused,)))
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
def test_of_a_set_there_is_one_status_and_of_the_others_many(publisher, desired, waits) -> None:
    many_pending(publisher, 2000)
    before = replace(desired, conditions=(Condition(type="Former", status="True"),))
    found = StatusUpdate(TARGET, before, desired)
    assert due_after(publisher, found, 0.0) == (False, waits)


def test_who_never_becomes_quiet_in_a_crowd_is_told_before_a_storm_is_over(publisher) -> None:
    many_pending(publisher, 2000)
    for moment in range(20):
        assert due_after(publisher, starting_group(moment), float(moment))[0] is False
    assert due_after(publisher, starting_group(50), 20.0) == (True, None)


def test_a_date_that_moves_on_is_no_further_news(publisher) -> None:
    first = status_update(status(0), status(1, breached=False, at="2026-01-01T00:00:01Z"))
    again = status_update(status(0), status(1, breached=False, at="2026-01-01T00:00:02Z"))
    assert due_after(publisher, first, 0.0) == (False, 0.25)
    assert due_after(publisher, again, 0.2) == (False, 0.25)


def test_while_there_is_no_room_good_news_wait_on(publisher) -> None:
    news = status_update(status(0), status(1))
    due_after(publisher, news, 0.0)
    assert due_after(publisher, news, 0.3, busy=True) == (False, 20.0)
    assert due_after(publisher, news, 4.0) == (True, None)


def test_who_waits_for_room_is_asked_in_order_of_arrival_and_once(publisher) -> None:
    news = status_update(status(0), status(1))
    for key in ("a", "b", "c"):
        publisher.due_updates(key, (news,), 0.0, busy=True)
        publisher.due_updates(key, (news,), 0.3, busy=True)
    assert publisher.release(2) == ["a", "b"]
    assert publisher.release(2) == [], "the room is theirs until they come"
    publisher.due_updates("a", (news,), 0.4, busy=False)
    assert publisher.release(2) == ["c"]
    publisher.forget("b")
    publisher.forget("c")
    assert publisher.release(2) == []


def test_a_storm_does_not_hold_back_news_for_ever(publisher) -> None:
    news = status_update(status(0), status(1))
    due_after(publisher, news, 0.0)
    assert due_after(publisher, news, 19.9, busy=True) == (False, 20.0)
    assert due_after(publisher, news, 20.0, busy=True) == (True, None)
    assert publisher.release(1) == []


def test_bad_news_do_not_wait_for_anything(publisher) -> None:
    breach = status_update(status(2, breached=False), status(0, breached=True))
    assert due_after(publisher, breach, 0.0, busy=True) == (True, None)


def test_a_clique_that_has_yet_to_start_is_no_bad_news(publisher) -> None:
    assert due_after(publisher, status_update(status(), status(0, breached=True)), 0.0) == (False, 0.25)


def test_news_that_took_themselves_back_are_forgotten(publisher) -> None:
    due_after(publisher, status_update(status(0), status(1)), 0.0)
    assert due_after(publisher, status_update(status(0), status(0)), 0.1) == (False, None)
    assert due_after(publisher, status_update(status(0), status(1)), 5.0) == (False, 5.25)


def test_a_status_is_published_on_the_version_that_it_was_made_from() -> None:
    (write,) = status_writes([replace(status_update(status(0), status(1)), resource_version="7")])
    assert write.body["metadata"] == {"resourceVersion": "7"}


def test_a_published_status_has_every_required_field() -> None:
    (write,) = status_writes([status_update(PodCliqueStatus(), status(1))])
    assert {"readyReplicas", "scheduledReplicas", "updatedReplicas"} <= set(write.body["status"])


GANG = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-0", "ns")


def waiting(words: str, placed: str = "False", clique: str = "a") -> PodGangStatus:
    fact = Condition(
        type=ConditionType.SCHEDULED,
        status=placed,
        reason="PodGroupsNotScheduled",
        message=f"Too few pods scheduled in {clique}; volcano says: {words}",
        last_transition_time="2026-01-01T00:00:00Z",
    )
    return PodGangStatus(phase="Pending", conditions=(fact,))


def test_a_gang_whose_scheduler_says_something_else_every_second_repeats_it_seldom(publisher) -> None:
    published, written = waiting("first"), []
    for now in range(300):
        said = waiting(f"{now}/300 nodes are available")
        told, later = due_after(publisher, StatusUpdate(GANG, published, said), float(now))
        assert told is (later is None)
        if told:
            published = said
            written.append(now)
    assert written == [2, 6, 14, 30, 62, 122, 182, 242]


def test_words_do_not_hold_up_other_news_and_come_with_them(publisher) -> None:
    before, after = waiting("no room"), waiting("all placed", placed="True")
    assert due_after(publisher, StatusUpdate(GANG, before, waiting("no room at all")), 0.0) == (False, 2.0)
    assert due_after(publisher, StatusUpdate(GANG, before, after), 1.0) == (False, 1.25)
    assert due_after(publisher, StatusUpdate(GANG, before, after), 1.25) == (True, None)
    talk = StatusUpdate(GANG, before, waiting("no room at all"))
    due, later = publisher.due_updates("other", (talk, status_update(status(0), status(1))), 0.0, busy=False)
    assert (due, later) == ([], 0.25)
    due, _ = publisher.due_updates("other", (talk, status_update(status(0), status(1))), 0.25, busy=False)
    assert len(due) == 2


def test_what_a_gang_says_itself_is_no_talk(publisher) -> None:
    assert due_after(publisher, StatusUpdate(GANG, waiting("no"), waiting("no", clique="b")), 0.0) == (
        False,
        0.25,
    )


def test_words_wait_while_there_are_deeds_to_do_and_make_no_crowd(publisher) -> None:
    for key in range(1000):
        publisher.due_updates(key, (StatusUpdate(GANG, waiting("a"), waiting("b")),), 0.0, busy=True)
    assert due_after(publisher, status_update(status(0), status(1)), 0.0) == (False, 0.25)
    due, later = publisher.due_updates(7, (StatusUpdate(GANG, waiting("a"), waiting("b")),), 2.0, busy=True)
    assert (due, later) == ([], 12.0)
    due, later = publisher.due_updates(7, (StatusUpdate(GANG, waiting("a"), waiting("b")),), 12.0, busy=False)
    assert (len(due), later) == (1, None)


def test_other_objects_never_talk(publisher) -> None:
    fact = Condition(type=ConditionType.CLIQUE_SCHEDULED, status="False", reason="R")
    said = [PodCliqueStatus(conditions=(replace(fact, message=words),)) for words in ("a", "b")]
    assert due_after(publisher, status_update(*said), 0.0) == (False, 0.25)
