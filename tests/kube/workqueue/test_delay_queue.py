"""The due times of delayed keys."""

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.workqueue.delay_queue import DelayQueue


def test_earliest_due_time_wins() -> None:
    delays: DelayQueue[str] = DelayQueue()
    delays.set("a", 5.0)
    delays.set("a", 3.0)
    delays.set("a", 9.0)
    assert delays.next_due() == 3.0
    assert list(delays.pop_due(10.0)) == ["a"]
    assert delays.next_due() is None


def test_keys_due_together_keep_insertion_order() -> None:
    delays: DelayQueue[object] = DelayQueue()
    keys = [object() for _ in range(5)]  # objects without an order: keys are never compared
    for key in keys:
        delays.set(key, 1.0)
    assert list(delays.pop_due(1.0)) == keys


def test_repeated_delays_of_a_key_do_not_grow_the_heap() -> None:
    delays: DelayQueue[str] = DelayQueue()
    for offset in range(10_000):
        delays.remove("a")
        delays.set("a", 1e9 + offset)
    assert len(delays._heap) < 200
    assert delays.next_due() == 1e9 + 9_999


steps = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "take"]), st.integers(0, 4), st.integers(0, 20)), max_size=60
)


@given(steps)
def test_delay_queue_equals_a_map_of_due_times(steps: list[tuple[str, int, int]]) -> None:
    delays: DelayQueue[int] = DelayQueue()
    model: dict[int, int] = {}
    for action, key, time in steps:
        if action == "set":
            delays.set(key, time)
            model[key] = min(time, model.get(key, time))
        elif action == "drop":
            delays.remove(key)
            model.pop(key, None)
        else:
            due = {key for key, at in model.items() if at <= time}
            assert set(delays.pop_due(time)) == due
            model = {key: at for key, at in model.items() if key not in due}
        assert delays.next_due() == min(model.values(), default=None)
        assert len(delays) == len(model)
