"""Watches with hostile content: the reflector skips objects that it cannot decode and never ends."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest
from structlog.testing import capture_logs

from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube import metrics
from grove.kube.cache import reflector
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS
from grove.kube.client.retry import NO_RETRY
from grove.kube.client.watch import EventDecoder
from grove.kube.errors import KubeError
from tests.fuzzing import seeds
from tests.kube.cache.reflector_harness import FAST_BACKOFF, bookmark, event, reflecting, stream
from tests.kube.scripted_server import serve

DEEP = b"[" * 1500 + b"]" * 1500


def deep(kind: str, name: str, version: int) -> bytes:
    return event(kind, name, version).replace(b'"metadata":', b'"aaa":%s,"metadata":' % DEEP)


async def test_deeply_nested_objects_are_skipped_in_watch() -> None:
    first = stream(deep("ADDED", "bad", 2), event("ADDED", "good", 3), bookmark(9, initial_end=True))
    script = (first, stream(deep("MODIFIED", "bad", 10), event("MODIFIED", "good", 11), stay=True))
    with capture_logs() as logs:
        async with reflecting(*script) as harness:
            await harness.until_cached(good=11)
            assert list(harness.cache.undecodable) == [("n", "bad")]
    skipped = [line for line in logs if line["event"] == "object skipped"]
    assert [(line["key"], line["reason"]) for line in skipped] == [
        ("n/bad", "it nests deeper than 200 levels")
    ]


async def test_watch_is_restarted_after_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "AFTER_FAILURE", FAST_BACKOFF)
    failures = metrics.watch_failures_total.labels(PODS.label)
    before = failures._value.get()

    class Faulty(Cache[Object]):
        bugs = 1

        def apply_event(self, kind: str, new: Object) -> None:
            if self.bugs:
                self.bugs -= 1
                raise KeyError("a bug")
            super().apply_event(kind, new)

    cache = Faulty(PODS, Object)
    synced = bookmark(9, initial_end=True)
    async with serve() as server:
        server.script = [
            stream(synced, event("ADDED", "a", 10), stay=True),
            stream(
                event("ADDED", "a", 10), bookmark(11, initial_end=True), event("ADDED", "b", 12), stay=True
            ),
        ]
        async with Client(server.config(), retry=NO_RETRY) as client:
            arrived = asyncio.Event()
            cache.subscribe(lambda old, new: arrived.set() if len(cache) == 2 else None)
            running = asyncio.create_task(Reflector(client, cache, backoff=FAST_BACKOFF).run())
            async with asyncio.timeout(60):
                await arrived.wait()
            running.cancel()
            await asyncio.wait([running])
    assert failures._value.get() == before + 1


def samples() -> list[bytes]:
    """Objects of kinds that the operator watches, as the API server sends them."""
    meta = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y", "controller": True}
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    bodies = [
        {"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running", "conditions": [condition]}},
        {"spec": {"replicas": 1, "podSpec": {"containers": []}}, "status": {"replicas": 1}},
        {"spec": {"podgroups": [{"name": "g", "podReferences": [{"namespace": "n", "name": "p"}]}]}},
        {"spec": {"spec": {"devices": {"config": [{"opaque": {"parameters": {"a": [1, 2.5, None]}}}]}}}},
    ]
    return [
        msgspec.json.encode({"metadata": {**meta, "ownerReferences": [owner]}, **body}) for body in bodies
    ]


HOSTILE = (
    DEEP,
    b'{"a":' * 1500 + b"1" + b"}" * 1500,
    b"1e999999999",
    b"9" * 5000,
    b"NaN",
    b"\xff\xfe",
    b'"\\ud800"',
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"-1",
    b"true",
    b'"' + b"x" * 100_000 + b'"',
    b"\x00",
)


def mutated(text: bytes, random: Random) -> bytes:
    """The text with some values replaced by hostile ones, bytes changed, and parts removed or repeated."""
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(text) + 1)
        match random.randrange(4):
            case 0:
                colons = [place for place in range(len(text)) if text[place : place + 1] == b":"]
                at = random.choice(colons) + 1 if colons else at
                end = min(
                    (place for mark in b",}]" if (place := text.find(mark, at)) >= 0), default=len(text)
                )
                text = text[:at] + random.choice(HOSTILE) + text[end:]
            case 1:
                text = text[:at] + bytes([random.randrange(256)]) + text[at + 1 :]
            case 2:
                text = text[:at] + text[at + random.randrange(40) :]
            case 3:
                text = text[:at] + text[max(0, at - 40) : at] + text[at:]
    return text.replace(b"\n", b" ")


def test_any_line_is_decoded_or_skipped() -> None:
    with capture_logs():
        check_lines()


def check_lines() -> None:
    kinds = (Pod, PodClique, PodGang, ResourceClaimTemplateObject, PodCliqueSet, Object)
    originals = samples()
    for seed, random in seeds(4000):
        line = b'{"type":"%s","object":%s}' % (
            random.choice((b"ADDED", b"MODIFIED", b"DELETED", b"BOOKMARK", b"ERROR", b"ODD")),
            random.choice(originals),
        )
        line = mutated(line, random)
        kind = random.choice(kinds)
        cache: Cache[object] = Cache(PODS, kind)  # type: ignore[type-var]
        watching = Reflector(Client(_Nowhere()), cache)  # type: ignore[arg-type]
        watching._version = "1"
        try:
            EventDecoder(kind, PODS).decode(line)
            watching._apply_lines([line], reflector._InitialList(cache))
        except KubeError:
            continue  # an ERROR event, or a server that is not supported: the reflector backs off
        except Exception as problem:
            raise AssertionError(f"seed {seed}, {kind.__name__}: {line[:300]!r}") from problem


class _Nowhere:
    """A transport that is never used."""
