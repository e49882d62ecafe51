"""The order of ready keys: owners take turns, started workloads go first, and no key waits for ever."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from grove import timing
from grove.kube.workqueue.fair_queue import FairQueue, QueueLane

Key = tuple[str, int]


class QueuedKeys:
    """A fair queue whose keys are (owner, number); those in `started` belong to started workloads."""

    def __init__(self) -> None:
        self.started: set[Key] = set()
        self.tenants: dict[str, str] = {}  # of owners; those without an entry share one
        self.queue: FairQueue[Key] = FairQueue(
            lambda key: QueueLane(key[0], started=key in self.started),
            lambda key: self.tenants.get(key[0], ""),
        )

    def add(self, *keys: Key) -> None:
        for key in keys:
            self.queue.add(key, 0.0)

    def all(self) -> list[Key]:
        return [self.queue.pop() for _ in range(len(self.queue))]


def test_small_owner_does_not_wait_for_large_one() -> None:
    waiting = QueuedKeys()
    waiting.add(*(("large", number) for number in range(1000)), ("small", 0), ("small", 1))
    assert waiting.all()[:5] == [("large", 0), ("small", 0), ("large", 1), ("small", 1), ("large", 2)]


def test_started_keys_go_before_new_keys() -> None:
    waiting = QueuedKeys()
    waiting.started = {("a", 8), ("a", 9)}
    waiting.add(("a", 0), ("a", 8), ("b", 1), ("a", 9))
    assert waiting.all() == [("a", 8), ("a", 9), ("a", 0), ("b", 1)]


def test_new_keys_are_served_among_busy_started_keys() -> None:
    waiting = QueuedKeys()
    waiting.started = {("busy", 0)}
    waiting.add(("a", 0), ("a", 1))
    served = Counter[Key]()
    for _ in range(2 * (timing.STARTED_KEYS_IN_A_ROW + 1)):
        waiting.add(("busy", 0))
        served[waiting.queue.pop()] += 1
    assert served == {("busy", 0): 2 * timing.STARTED_KEYS_IN_A_ROW, ("a", 0): 1, ("a", 1): 1}


def test_waiting_key_keeps_its_place_when_it_is_started() -> None:
    waiting = QueuedKeys()
    waiting.add(("a", 0), ("a", 1))
    waiting.started = {("a", 0)}
    waiting.add(("a", 0))
    assert waiting.all() == [("a", 0), ("a", 1)]


def test_removed_key_is_not_served() -> None:
    waiting = QueuedKeys()
    waiting.started = {("a", 1)}
    waiting.add(("a", 0), ("a", 1), ("a", 2))
    waiting.started = set()
    for number in (0, 1, 7):
        waiting.queue.remove(("a", number))
    assert waiting.all() == [("a", 2)]
    assert not waiting.queue


keys = st.tuples(st.sampled_from("abc"), st.integers(0, 3))


@given(st.lists(keys, unique=True), st.sets(keys))
def test_owners_take_turns_and_each_key_is_served_once(added: list[Key], started: set[Key]) -> None:
    waiting = QueuedKeys()
    waiting.started = started
    waiting.add(*added)
    served = waiting.all()
    assert sorted(served) == sorted(added)
    for alike in ([key for key in served if key in started], [key for key in served if key not in started]):
        left, turns = Counter(owner for owner, _ in alike), Counter[str]()
        for owner, _ in alike:
            turns[owner] += 1
            left[owner] -= 1
            assert all(turns[owner] <= turns[other] + 1 for other in left if left[other])


def test_keys_of_other_tenants_wait_and_allowed_ones_are_served() -> None:
    waiting = QueuedKeys()
    waiting.started, waiting.tenants = {("a", 0)}, {"a": "slow", "b": "fast"}
    waiting.add(("a", 0), ("a", 1), ("b", 0), ("b", 1))
    queue = waiting.queue
    assert queue.pop(lambda tenant: tenant == "fast") == ("b", 0)
    assert queue.pop(lambda _: False) is None
    assert len(queue) == 3
    assert waiting.all() == [("a", 0), ("a", 1), ("b", 1)]


def test_tenant_with_one_owner_does_not_wait_for_many_owners() -> None:
    waiting = QueuedKeys()
    waiting.tenants = {"z": "small"}
    waiting.add(*((f"a{number}", 0) for number in range(1000)), ("z", 0), ("z", 1))
    assert [owner for owner, _ in waiting.all()[:5]] == ["a0", "z", "a1", "z", "a2"]
