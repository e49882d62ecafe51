"""A cache whose namespaces are watched one by one."""

from __future__ import annotations

import pytest

from grove.kube.cache.cache import Cache, version_of
from grove.kube.client.client import Object
from grove.kube.client.resource import NODES, PODS, Resource
from grove.kube.client.undecodable import Undecodable
from tests.kube.cache.objects import thing


def within(namespace: str, name: str, version: int) -> Object:
    return thing(name, version, f"{namespace}-{name}", namespace=namespace)


@pytest.fixture
def cache() -> Cache[Object]:
    """A cache of two namespaces, of which the first is listed up to version 10."""
    cache = Cache(PODS, Object)
    cache.watch_only(("a", "b"))
    cache.stores[0].replace([within("a", "x", 5)], "10")
    return cache


def versions(cache: Cache[Object]) -> dict[str, int]:
    return {f"{each.metadata.namespace}/{each.metadata.name}": version_of(each) for each in cache}


def test_each_namespace_has_a_store() -> None:
    whole = Cache(PODS, Object)
    assert whole.stores == (whole,)
    whole.watch_only(("a", "b"))
    assert [each.namespace for each in whole.stores] == ["a", "b"]
    assert {each.resource for each in whole.stores} == {PODS}


@pytest.mark.parametrize(("resource", "namespaces"), [(PODS, ()), (NODES, ("a", "b"))])
def test_all_is_watched_without_namespaces(resource: Resource, namespaces: tuple[str, ...]) -> None:
    """Without a list of them, and for a kind that has none."""
    cache = Cache(resource, Object)
    cache.watch_only(namespaces)
    assert cache.stores == (cache,)


def test_cache_is_synced_with_its_last_namespace(cache: Cache[Object]) -> None:
    first, second = cache.stores
    calls: list[bool] = []
    cache.on_synced_or_absent(lambda: calls.append(cache.synced.is_set()))
    assert (first.synced.is_set(), second.synced.is_set(), cache.synced.is_set()) == (True, False, False)
    assert not cache.synced_or_absent.is_set()
    second.replace([], "20")
    assert (cache.synced.is_set(), calls) == (True, [True])
    second.clear()
    assert (first.synced.is_set(), cache.synced.is_set(), calls) == (True, False, [True, False])
    assert versions(cache) == {"a/x": 5}


def test_list_of_one_namespace_removes_nothing_of_others(cache: Cache[Object]) -> None:
    first, second = cache.stores
    second.replace([within("b", "x", 6)], "20")
    assert versions(cache) == {"a/x": 5, "b/x": 6}
    second.replace([], "30")
    assert versions(cache) == {"a/x": 5}
    first.clear()
    assert versions(cache) == {}


def test_reply_is_compared_with_the_watch_of_its_namespace(cache: Cache[Object]) -> None:
    cache.stores[1].replace([], "20")
    assert cache.apply_reply(within("a", "new", 15)) is True, "the watch of a is at 10"
    assert cache.apply_reply(within("b", "new", 15)) is False, "the watch of b has reported its deletion"
    cache.stores[0].apply_bookmark("30")
    assert cache.apply_reply(within("a", "late", 25)) is False
    assert cache.apply_reply(within("c", "x", 99)) is False, "c is not watched"


def test_list_of_one_namespace_keeps_tombstones_of_others(cache: Cache[Object]) -> None:
    cache.apply_delete_reply("a", "x", "a-x", None)
    cache.stores[1].replace([], "20")
    cache.apply_event("MODIFIED", within("a", "x", 7))
    assert versions(cache) == {}, "an event from before the delete"
    cache.apply_event("DELETED", within("a", "x", 8))
    cache.apply_event("ADDED", within("a", "x", 9))
    assert versions(cache) == {"a/x": 9}


def test_object_without_readable_namespace_is_of_its_watch(cache: Cache[Object]) -> None:
    nameless = Undecodable("too deep")
    cache.stores[1].apply_undecodable("ADDED", nameless)
    assert list(cache.undecodable) == [("", "")]
    cache.stores[0].replace([within("a", "x", 5)], "20")
    assert list(cache.undecodable) == [("", "")], "another namespace has it"
    cache.stores[1].apply_undecodable("DELETED", nameless)
    assert not cache.undecodable
