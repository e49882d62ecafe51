"""Tenants take turns, and within a tenant its owners; the items of one cost the others nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.workqueue.round_robin import RoundRobinQueue

Item = tuple[str, str, int]  # its tenant, its owner, a number


def filled(*items: Item) -> RoundRobinQueue[str, Item]:
    queue: RoundRobinQueue[str, Item] = RoundRobinQueue()
    for item in items:
        queue.add(item, item[0], item[1])
    return queue


def drained(queue: RoundRobinQueue[str, Item]) -> list[Item]:
    items = []
    while (item := queue.pop()) is not None:
        items.append(item)
    return items


def test_tenants_take_turns_and_within_one_its_owners() -> None:
    queue = filled(("t", "a", 0), ("t", "a", 1), ("t", "b", 0), ("u", "c", 0), ("u", "c", 1))
    assert drained(queue) == [("t", "a", 0), ("u", "c", 0), ("t", "b", 0), ("u", "c", 1), ("t", "a", 1)]
    assert not queue


def test_only_allowed_tenants_are_served_and_keep_their_turn() -> None:
    queue = filled(("t", "a", 0), ("u", "b", 0), ("v", "c", 0))
    assert queue.pop(lambda tenant: tenant != "t") == ("u", "b", 0)
    assert queue.pop(lambda _: False) is None
    assert [queue.holds(tenant) for tenant in "tuv"] == [True, False, True]
    assert drained(queue) == [("t", "a", 0), ("v", "c", 0)]


def test_tenant_is_asked_once_however_many_owners_it_has() -> None:
    queue = filled(*(("slow", f"a{number}", 0) for number in range(1000)), ("fast", "b", 0))
    asked: list[str] = []
    assert queue.pop(lambda tenant: asked.append(tenant) or tenant == "fast") == ("fast", "b", 0)
    assert asked == ["slow", "fast"]


items = st.tuples(st.sampled_from("tu"), st.sampled_from("ab"), st.integers(0, 3))


@given(st.lists(items, unique=True), st.sets(items))
def test_removed_items_are_not_served_and_all_others_once(added: list[Item], removed: set[Item]) -> None:
    queue = filled(*added)
    for item in removed:
        queue.remove(item, item[0], item[1])
    assert sorted(drained(queue)) == sorted(set(added) - removed)
    assert not queue
