"""The delayed half of the queue."""

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.workqueue.delay_queue import DelayQueue


def test_the_earliest_moment_wins() -> None:
    delays: DelayQueue[str] = DelayQueue()
    delays.set("a", 5.0)
    delays.set("a", 3.0)
    delays.set("a", 9.0)
    assert delays.next_due() == 3.0
    assert list(delays.pop_due(10.0)) == ["a"]
    assert delays.next_due() is None


def test_keys_due_at_the_same_moment_come_in_order_of_arrival() -> None:
    delays: DelayQueue[object] = DelayQueue()
    keys = [object() for _ in range(5)]  # objects without an order: keys are never compared
    for key in keys:
        delays.set(key, 1.0)
    assert list(delays.pop_due(1.0)) == keys


def test_a_key_that_renames_its_moment_for_ever_takes_no_more_room() -> None:
    delays: DelayQueue[str] = DelayQueue()
    for since in range(10_000):
        delays.remove("a")
        delays.set("a", 1e9 + since)
    assert len(delays._heap) < 200
    assert delays.next_due() == 1e9 + 9_999


steps = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "take"]), st.integers(0, 4), st.integers(0, 20)), max_size=60
)


@given(steps)
def test_it_behaves_like_a_mapping_from_key_to_earliest_moment(steps: list[tuple[str, int, int]]) -> None:
    delays: DelayQueue[int] = DelayQueue()
    model: dict[int, int] = {}
    for action, key, since in steps:
        if action == "set":
            delays.set(key, since)
            model[key] = min(since, model.get(key, since))
        elif action == "drop":
            delays.remove(key)
            model.pop(key, None)
        else:
            due = {key for key, at in model.items() if at <= since}
            assert set(delays.pop_due(since)) == due
            model = {key: at for key, at in model.items() if key not in due}
        assert delays.next_due() == min(model.values(), default=None)
        assert len(delays) == len(model)
