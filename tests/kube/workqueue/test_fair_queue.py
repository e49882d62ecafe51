"""Who is next when many wait: turns for owners, what was begun first, nobody for ever."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.workqueue.fair_queue import _STARTED_IN_A_ROW, FairQueue, QueueLane

Key = tuple[str, int]


class QueuedKeys:
    """A line whose keys are (owner, number), and in which only those that were told are begun."""

    def __init__(self) -> None:
        self.started: set[Key] = set()
        self.queue: FairQueue[Key] = FairQueue(lambda key: QueueLane(key[0], started=key in self.started))

    def join(self, *keys: Key) -> None:
        for key in keys:
            self.queue.add(key, 0.0)

    def all(self) -> list[Key]:
        return [self.queue.pop() for _ in range(len(self.queue))]


def test_a_small_owner_does_not_wait_for_a_large_one() -> None:
    waiting = QueuedKeys()
    waiting.join(*(("large", number) for number in range(1000)), ("small", 0), ("small", 1))
    assert waiting.all()[:5] == [("large", 0), ("small", 0), ("large", 1), ("small", 1), ("large", 2)]


def test_what_was_begun_goes_before_what_is_new() -> None:
    waiting = QueuedKeys()
    waiting.started = {("a", 8), ("a", 9)}
    waiting.join(("a", 0), ("a", 8), ("b", 1), ("a", 9))
    assert waiting.all() == [("a", 8), ("a", 9), ("a", 0), ("b", 1)]


def test_what_is_new_has_its_turn_however_busy_the_others_are() -> None:
    waiting = QueuedKeys()
    waiting.started = {("busy", 0)}
    waiting.join(("a", 0), ("a", 1))
    served = Counter[Key]()
    for _ in range(2 * (_STARTED_IN_A_ROW + 1)):
        waiting.join(("busy", 0))
        served[waiting.queue.pop()] += 1
    assert served == {("busy", 0): 2 * _STARTED_IN_A_ROW, ("a", 0): 1, ("a", 1): 1}


def test_who_waits_keeps_its_place_and_has_one_turn_also_if_it_has_begun_meanwhile() -> None:
    waiting = QueuedKeys()
    waiting.join(("a", 0), ("a", 1))
    waiting.started = {("a", 0)}
    waiting.join(("a", 0))
    assert waiting.all() == [("a", 0), ("a", 1)]


def test_who_leaves_has_no_turn_wherever_it_waits() -> None:
    waiting = QueuedKeys()
    waiting.started = {("a", 1)}
    waiting.join(("a", 0), ("a", 1), ("a", 2))
    waiting.started = set()
    for number in (0, 1, 7):
        waiting.queue.remove(("a", number))
    assert waiting.all() == [("a", 2)]
    assert not waiting.queue


keys = st.tuples(st.sampled_from("abc"), st.integers(0, 3))


@given(st.lists(keys, unique=True), st.sets(keys))
def test_everybody_has_one_turn_and_no_owner_two_while_another_waits(
    joining: list[Key], started: set[Key]
) -> None:
    waiting = QueuedKeys()
    waiting.started = started
    waiting.join(*joining)
    served = waiting.all()
    assert sorted(served) == sorted(joining)
    for alike in ([key for key in served if key in started], [key for key in served if key not in started]):
        left, turns = Counter(owner for owner, _ in alike), Counter[str]()
        for owner, _ in alike:
            turns[owner] += 1
            left[owner] -= 1
            assert all(turns[owner] <= turns[other] + 1 for other in left if left[other])


def test_keys_that_are_barred_wait_and_the_others_have_their_turn() -> None:
    waiting = QueuedKeys()
    waiting.started = {("a", 0)}
    waiting.join(("a", 0), ("a", 1), ("b", 0), ("b", 1))
    line = waiting.queue
    assert line.pop(lambda key: key[0] == "a") == ("b", 0)
    assert line.pop(lambda _: True) is None
    assert len(line) == 3
    assert waiting.all() == [("a", 0), ("a", 1), ("b", 1)]
