"""Objects that cannot be decoded are named by their metadata, and affect no other object."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.json_depth import MAX_DEPTH, TOO_DEEP
from grove.kube.cache.cache import Cache
from grove.kube.client import decoding
from grove.kube.client.client import Object
from grove.kube.client.resource import PODS
from grove.kube.client.transport import Request
from grove.kube.client.undecodable import Undecodable, undecodable
from grove.kube.client.watch import Event, EventDecoder, SkippedEvent
from grove.kube.errors import DecodeError

DEEP = b"[" * 1500 + b"]" * 1500


class Strict(msgspec.Struct, frozen=True):
    """An object whose spec has to be a number."""

    metadata: decoding.ObjectMeta
    spec: int = 0


def text(name: str = "a", spec: bytes = b"1", version: int = 5, more: bytes = b"") -> bytes:
    metadata = b'{"name":"%s","namespace":"n",%s"uid":"u-%s","resourceVersion":"%d"}' % (
        name.encode(),
        more,
        name.encode(),
        version,
    )
    return b'{"kind":"X","metadata":%s,"spec":%s}' % (metadata, spec)


def event(kind: str, found: bytes) -> bytes:
    return b'{"type":"%s","object":%s}' % (kind.encode(), found)


@pytest.mark.parametrize(
    ("found", "named", "reason"),
    [
        (text(spec=DEEP), "a", TOO_DEEP),
        (text(spec=b'{"metadata":{"name":"inner"},"a":%s}' % DEEP), "a", TOO_DEEP),
        (text(spec=b'"text"'), "a", "Expected `int`, got `str`"),
        (text(spec=b"\xff"), "a", "malformed"),
        (text(spec=b"9" * 5000), "a", ""),
        (text(more=b'"managedFields":[{"fieldsV1":%s}],' % DEEP), "a", TOO_DEEP),
        (text(more=b'"annotations":{"a":"}{\\"][\\\\"},', spec=DEEP), "a", TOO_DEEP),
        (text(more=b'"labels":{"a":"b"},', spec=b"["), "a", "malformed"),
        (b'{"kind":"X","spec":%s}' % DEEP, "", TOO_DEEP),
        (b'{"spec":%s,"metadata":{"name":"a"}}' % (b"[" * 30_000 + b"]" * 30_000), "", TOO_DEEP),
        (b'{"metadata":{"name":7}}', "", ""),
        (b"", "", ""),
        (b"null", "", ""),
        (DEEP, "", TOO_DEEP),
    ],
)
def test_watch_event_of_undecodable_object_names_it(found: bytes, named: str, reason: str) -> None:
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        skipped = EventDecoder(Strict, PODS).decode(event(kind, found))
        assert isinstance(skipped, SkippedEvent)
        assert (skipped.type, skipped.object.metadata.name) == (kind, named)
        assert reason in skipped.object.reason


def test_nesting_up_to_the_limit_is_decoded() -> None:
    fits = b"[" * (MAX_DEPTH - 2) + b"]" * (MAX_DEPTH - 2)
    assert isinstance(EventDecoder(Object, PODS).decode(event("ADDED", text(spec=fits))), Event)
    assert isinstance(
        EventDecoder(Object, PODS).decode(event("ADDED", text(spec=b"[%s]" % fits))), SkippedEvent
    )


@pytest.mark.parametrize("bad", [DEEP, b'"text"', b'"\xc3"'])
def test_list_page_skips_undecodable_items_only(bad: bytes) -> None:
    items = (text("a"), text("b", bad), text("c"), text("d", bad))
    body = b'{"items":[%s],"metadata":{"resourceVersion":"9","continue":"next"}}' % b",".join(items)
    page = decoding.decode_list(body, Strict, PODS)
    assert [item.metadata.name for item in page.items] == ["a", "c"]
    assert [skipped.metadata.name for skipped in page.undecodable] == ["b", "d"]
    assert (page.resource_version, page.continue_) == ("9", "next")


@pytest.mark.parametrize("body", [text(spec=DEEP), text(spec=b'"text"'), b"", b"\xff", DEEP])
def test_reply_that_cannot_be_decoded_is_a_decode_error(body: bytes) -> None:
    with pytest.raises(DecodeError, match="the reply is not a Strict"):
        decoding.decode(body, Strict, Request("GET", "/", "get"))
    assert decoding.is_status(text(spec=DEEP)) is False


def cached(name: str = "a", version: int = 5) -> Strict:
    return msgspec.json.decode(text(name, version=version), type=Strict)


def bad(name: str = "a", version: int = 6, uid: str = "") -> Undecodable:
    found = undecodable(text(name, b"[", version), ValueError("bad"))
    meta = msgspec.structs.replace(found.metadata, uid=uid or found.metadata.uid)
    return msgspec.structs.replace(found, metadata=meta, reason="bad")


class Changes:
    def __init__(self, cache: Cache[Strict]) -> None:
        self.seen: list[tuple[str, bool]] = []
        cache.on_undecodable(lambda found: self.seen.append((found.key[1], found.key in cache.undecodable)))


def test_cache_keeps_last_decodable_state() -> None:
    cache = Cache(PODS, Strict)
    changes = Changes(cache)
    cache.replace([cached()], "5")
    cache.apply_undecodable("MODIFIED", bad())
    cache.apply_undecodable("MODIFIED", bad(version=7))
    assert cache.get("n", "a") == cached()
    assert (list(cache.undecodable), changes.seen) == ([("n", "a")], [("a", True)])
    cache.apply_event("MODIFIED", cached(version=8))
    assert (cache.undecodable, changes.seen[1:]) == ({}, [("a", False)])


@pytest.mark.parametrize("kind", ["DELETED", "ADDED"])
def test_cache_drops_undecodable_object_that_is_gone(kind: str) -> None:
    cache = Cache(PODS, Strict)
    cache.replace([cached()], "5")
    cache.apply_undecodable(kind, bad(uid="u-a" if kind == "DELETED" else "another"))
    assert cache.get("n", "a") is None
    assert bool(cache.undecodable) is (kind == "ADDED")


def test_relist_replaces_undecodable_objects() -> None:
    cache = Cache(PODS, Strict)
    changes = Changes(cache)
    cache.replace([cached("a"), cached("b"), cached("c")], "5", [bad("d")])
    cache.replace([cached("c", 7)], "8", [bad("a"), bad("b", uid="another")])
    assert {name for _, name in cache.undecodable} == {"a", "b"}
    assert [name for name in "abcd" if cache.get("n", name)] == ["a", "c"]
    assert sorted(changes.seen) == [("a", True), ("b", True), ("d", False), ("d", True)]
    cache.clear()
    assert cache.undecodable == {}


def test_undecodable_event_older_than_own_write_is_ignored() -> None:
    cache = Cache(PODS, Strict)
    cache.replace([cached()], "5")
    cache.apply_reply(cached(version=12))
    cache.apply_undecodable("MODIFIED", bad(version=10))
    cache.apply_undecodable("DELETED", bad(version=9, uid="former"))
    assert (cache.undecodable, cache.get("n", "a")) == ({}, cached(version=12))


def test_decodable_event_older_than_own_write_clears_entry() -> None:
    cache = Cache(PODS, Strict)
    cache.replace([], "5", [bad(version=5)])
    cache.apply_reply(cached(version=12))
    assert cache.undecodable == {}
    cache.apply_undecodable("MODIFIED", bad(version=13))
    cache.apply_event("DELETED", cached(version=14))
    assert (cache.undecodable, cache.get("n", "a")) == ({}, None)
