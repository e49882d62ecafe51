"""The delayed half of the queue."""

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.timetable import Timetable


def test_the_earliest_moment_wins() -> None:
    timetable: Timetable[str] = Timetable()
    timetable.set("a", 5.0)
    timetable.set("a", 3.0)
    timetable.set("a", 9.0)
    assert timetable.next() == 3.0
    assert list(timetable.take_due(10.0)) == ["a"]
    assert timetable.next() is None


def test_keys_due_at_the_same_moment_come_in_order_of_arrival() -> None:
    timetable: Timetable[object] = Timetable()
    keys = [object() for _ in range(5)]  # objects without an order: keys are never compared
    for key in keys:
        timetable.set(key, 1.0)
    assert list(timetable.take_due(1.0)) == keys


def test_a_key_that_renames_its_moment_for_ever_takes_no_more_room() -> None:
    timetable: Timetable[str] = Timetable()
    for moment in range(10_000):
        timetable.drop("a")
        timetable.set("a", 1e9 + moment)
    assert len(timetable._heap) < 200
    assert timetable.next() == 1e9 + 9_999


steps = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "take"]), st.integers(0, 4), st.integers(0, 20)), max_size=60
)


@given(steps)
def test_it_behaves_like_a_mapping_from_key_to_earliest_moment(steps: list[tuple[str, int, int]]) -> None:
    timetable: Timetable[int] = Timetable()
    model: dict[int, int] = {}
    for action, key, moment in steps:
        if action == "set":
            timetable.set(key, moment)
            model[key] = min(moment, model.get(key, moment))
        elif action == "drop":
            timetable.drop(key)
            model.pop(key, None)
        else:
            due = {key for key, at in model.items() if at <= moment}
            assert set(timetable.take_due(moment)) == due
            model = {key: at for key, at in model.items() if key not in due}
        assert timetable.next() == min(model.values(), default=None)
        assert len(timetable) == len(model)
