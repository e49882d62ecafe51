"""The rules by which a cache combines its two sources: the watch and the replies of own requests."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import REGISTRY

from grove.kube.cache.cache import Cache, version_of
from grove.kube.client.client import Object
from grove.kube.client.resource import PODS
from grove.kube.errors import DecodeError
from tests.kube.cache.objects import thing


def by_colour(found: Object) -> list[str]:
    return [found.metadata.labels["colour"]] if "colour" in found.metadata.labels else []


@pytest.fixture
def cache() -> Cache[Object]:
    """A cache whose watch has sent everything up to version 10, with `a` at 5."""
    cache = Cache(PODS, Object, indexes={"colour": by_colour})
    cache.replace([thing("a", 5)], "10")
    return cache


def versions(cache: Cache[Object]) -> dict[str, int]:
    return {found.metadata.name: version_of(found) for found in cache}


def test_reply_is_cached_at_once(cache: Cache[Object]) -> None:
    assert cache.apply_reply(thing("b", 11)) is True
    assert cache.apply_reply(thing("a", 12)) is True
    assert versions(cache) == {"a": 12, "b": 11}


def test_reply_never_replaces_newer_entry(cache: Cache[Object]) -> None:
    cache.apply_event("MODIFIED", thing("a", 13))
    assert cache.apply_reply(thing("a", 12)) is False
    assert versions(cache) == {"a": 13}


def test_reply_without_last_finalizer_removes_the_object(cache: Cache[Object]) -> None:
    """The server returns the object that the write deleted, with the version before it."""
    deleted = thing("a", 5, terminating=True)
    deleted = Object(replace(deleted.metadata, deletion_grace_period_seconds=0))
    assert cache.apply_reply(deleted) is True
    assert versions(cache) == {}
    cache.apply_event("MODIFIED", thing("a", 6))
    assert versions(cache) == {}, "an event from before the delete"


def test_reply_of_pod_in_its_grace_period_is_kept(cache: Cache[Object]) -> None:
    dying = thing("a", 12, terminating=True)
    cache.apply_reply(Object(replace(dying.metadata, deletion_grace_period_seconds=30)))
    assert versions(cache) == {"a": 12}


def test_event_never_replaces_newer_reply(cache: Cache[Object]) -> None:
    cache.apply_reply(thing("a", 12))
    cache.apply_event("MODIFIED", thing("a", 11))
    assert versions(cache) == {"a": 12}


def test_relist_keeps_entries_newer_than_the_list(cache: Cache[Object]) -> None:
    cache.apply_reply(thing("a", 22))
    cache.apply_reply(thing("b", 21))
    cache.replace([thing("a", 15)], "20")
    assert versions(cache) == {"a": 22, "b": 21}


def test_relist_removes_deleted_objects(cache: Cache[Object]) -> None:
    cache.replace([thing("c", 15)], "20")
    assert versions(cache) == {"c": 15}


def test_delete_reply_with_object_means_terminating(cache: Cache[Object]) -> None:
    cache.apply_delete_reply("n", "a", "a", thing("a", 11, terminating=True))
    found = cache.get("n", "a")
    assert found is not None
    assert found.metadata.deletion_timestamp is not None
    cache.apply_event("DELETED", thing("a", 12))
    assert versions(cache) == {}


def test_delete_reply_with_last_state_means_deleted(cache: Cache[Object]) -> None:
    cache.apply_delete_reply("n", "a", "a", thing("a", 5))
    assert versions(cache) == {}


@pytest.mark.parametrize(
    "revive",
    [
        lambda cache: cache.apply_event("MODIFIED", thing("a", 11)),
        lambda cache: cache.apply_reply(thing("a", 12)),
        lambda cache: cache.replace([thing("a", 12)], "12"),
    ],
    ids=["event", "reply", "relist"],
)
def test_tombstone_rejects_states_older_than_delete(
    cache: Cache[Object], revive: Callable[[Cache[Object]], object]
) -> None:
    cache.apply_delete_reply("n", "a", "a", None)
    revive(cache)
    assert versions(cache) == {}


def test_tombstone_applies_to_its_uid_only(cache: Cache[Object]) -> None:
    cache.apply_delete_reply("n", "a", "a", None)
    cache.apply_event("DELETED", thing("other", 11))
    cache.apply_event("MODIFIED", thing("a", 12))
    assert versions(cache) == {}, "DELETED of another object does not remove the tombstone"
    cache.apply_reply(thing("a", 14, uid="successor"))
    assert versions(cache) == {"a": 14}
    cache.apply_event("DELETED", thing("a", 13))
    assert versions(cache) == {"a": 14}, "the successor is not the one that was deleted"


@pytest.mark.parametrize(("list_version", "removed"), [("4", False), ("20", True)])
def test_relist_removes_tombstone_only_if_newer(list_version: str, removed: bool) -> None:
    cache = Cache(PODS, Object)
    cache.apply_reply(thing("a", 5))
    cache.apply_delete_reply("n", "a", "a", None)
    cache.replace([], list_version)
    cache.apply_event("ADDED", thing("a", 30))
    assert (versions(cache) == {"a": 30}) is removed


def test_late_reply_never_restores_deleted_object(cache: Cache[Object]) -> None:
    cache.apply_event("DELETED", thing("a", 14))
    assert cache.apply_reply(thing("a", 13)) is False
    cache.apply_bookmark("30")
    assert cache.apply_reply(thing("b", 29)) is False, "created and deleted before the bookmark"
    assert versions(cache) == {}


def test_mark_deleted_with_other_uid_changes_nothing(cache: Cache[Object]) -> None:
    cache.mark_deleted("n", "a", "older-uid")
    assert versions(cache) == {"a": 5}
    cache.mark_deleted("n", "a", "a")
    assert versions(cache) == {}


def test_cleared_cache_is_absent_and_not_synced(cache: Cache[Object]) -> None:
    cache.clear()
    assert (versions(cache), cache.synced.is_set(), cache.synced_or_absent.is_set()) == ({}, False, True)


def test_reply_outside_the_selector_is_not_cached() -> None:
    cache = Cache(PODS, Object, namespace="n", labels={"app": "x"})
    assert cache.apply_reply(thing("a", 1, namespace="other", labels={"app": "x"})) is False
    assert cache.apply_reply(thing("a", 1)) is False
    assert cache.apply_reply(thing("a", 1, labels={"app": "x"})) is True
    assert cache.apply_reply(thing("a", 2, labels={"app": "y"})) is True
    assert versions(cache) == {}, "a relabelled object is removed by its reply"


def test_index_follows_changes_of_objects(cache: Cache[Object]) -> None:
    cache.apply_reply(thing("b", 11, labels={"colour": "red"}))
    cache.apply_reply(thing("c", 12, labels={"colour": "red"}))
    assert [found.metadata.name for found in cache.by_index("colour", "red")] == ["b", "c"]
    cache.apply_reply(thing("b", 13, labels={"colour": "blue"}))
    cache.apply_event("DELETED", thing("c", 14))
    assert cache.by_index("colour", "red") == []
    assert [found.metadata.name for found in cache.by_index("colour", "blue")] == ["b"]


def test_failing_handler_does_not_affect_other_handlers(cache: Cache[Object]) -> None:
    changes = []

    def broken(old: Object | None, new: Object | None) -> None:
        raise RuntimeError("a bug")

    cache.subscribe(broken)
    stop = cache.subscribe(
        lambda old, new: changes.append((old and version_of(old), new and version_of(new)))
    )
    cache.apply_reply(thing("a", 11))
    cache.apply_event("MODIFIED", thing("a", 11))
    cache.apply_event("DELETED", thing("a", 12))
    stop()
    cache.apply_reply(thing("b", 13))
    assert changes == [(5, 11), (11, None)]


def test_object_count_metric_ends_with_the_cache() -> None:
    def count() -> float | None:
        return REGISTRY.get_sample_value("grove_kube_cache_objects", {"resource": "pods"})

    short_lived = Cache(PODS, Object)
    short_lived.replace([thing("a", 5), thing("b", 6)], "10")
    assert count() == 2
    del short_lived
    gc.collect()
    assert count() == 0


def test_version_that_is_not_a_number_is_an_error(cache: Cache[Object]) -> None:
    with pytest.raises(DecodeError, match="this server is not supported"):
        cache.apply_bookmark("abc")


class Timeline:
    """A server's history of two names: the source of events, replies and lists, which come late and mixed."""

    def __init__(self, steps: list[tuple[str, bool]]) -> None:
        self.events: list[tuple[str, Object]] = []
        alive: dict[str, str] = {}
        for version, (name, is_delete) in enumerate(steps, start=1):
            kind = "DELETED" if is_delete else "MODIFIED" if name in alive else "ADDED"
            if is_delete and name not in alive:
                continue
            uid = alive.setdefault(name, f"{name}@{version}")
            self.events.append((kind, thing(name, version, uid)))
            if is_delete:
                del alive[name]
        self.end = {
            name: max(version_of(o) for _, o in self.events if o.metadata.name == name) for name in alive
        }

    def state_at(self, version: int) -> list[Object]:
        state: dict[str, Object] = {}
        for kind, found in self.events:
            if version_of(found) <= version:
                if kind == "DELETED":
                    state.pop(found.metadata.name)
                else:
                    state[found.metadata.name] = found
        return list(state.values())


@given(st.data())
def test_cache_converges_in_any_order_of_updates(data: st.DataObject) -> None:
    steps = st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=12)
    history = Timeline(data.draw(steps))
    cache = Cache(PODS, Object)
    delivered = 0
    while delivered < len(history.events):
        update = data.draw(st.sampled_from(["event", "event", "reply", "gone", "relist"]))
        pick = data.draw(st.integers(0, len(history.events) - 1))
        kind, found = history.events[pick]
        if update == "event":
            cache.apply_event(*history.events[delivered])
            delivered += 1
        elif update == "reply" and kind != "DELETED":
            cache.apply_reply(found)
        elif update == "gone" and kind == "DELETED":
            cache.apply_delete_reply("n", found.metadata.name, found.metadata.uid, None)
        elif update == "relist" and pick >= delivered:
            version = version_of(found)
            cache.replace(history.state_at(version), str(version))
            delivered = pick + 1
    assert versions(cache) == history.end


def test_projection_is_applied_to_every_stored_object() -> None:
    cache = Cache(PODS, Object, projection=lambda found: thing(found.metadata.name, version_of(found)))
    cache.replace([thing("a", 5, labels={"x": "y"})], "10")
    cache.apply_event("ADDED", thing("b", 11, labels={"x": "y"}))
    cache.apply_reply(thing("c", 12, labels={"x": "y"}))
    assert {found.metadata.name: found.metadata.labels for found in cache} == {"a": {}, "b": {}, "c": {}}
    assert cache.compact(thing("d", 13, labels={"x": "y"})).metadata.labels == {}
