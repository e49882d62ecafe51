"""Grove's client and cache on the tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bench.kube.sample import NO_SCHEDULER, Meter, metered, pod, read_list, resident_bytes
from grove.api.meta import ObjectMeta
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client import decoding
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS


class _Terminated(Struct, frozen=True, gc=False, rename="camel"):
    exit_code: int = 0
    reason: str = ""


class _State(Struct, frozen=True, gc=False):
    terminated: _Terminated | None = None


class _ContainerStatus(Struct, frozen=True, gc=False, rename="camel"):
    name: str
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State = _State()


class _Gate(Struct, frozen=True, gc=False):
    name: str


class _Condition(Struct, frozen=True, gc=False, rename="camel"):
    type: str
    status: Literal["True", "False", "Unknown"]
    last_transition_time: str = ""


class _Spec(Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[_Gate, ...] = ()


class _Status(Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class Pod(Struct, frozen=True, gc=False):
    """The fields of a pod that an operator reads."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


def _cache() -> Cache[Pod]:
    owners = {"owner": lambda found: [owner.uid for owner in found.metadata.owner_references]}
    return Cache(PODS, Pod, indexes=owners)


async def create(kubeconfig: str, namespace: str, count: int, in_flight: int) -> None:
    """Creates pods with the client; replies are decoded into the fields that an operator reads."""
    async with Client(config.load(Path(kubeconfig))) as client:

        async def worker(names: Iterator[str]) -> None:
            for name in names:
                body = pod(name, namespace, NO_SCHEDULER)
                await client.create(PODS, body, namespace=namespace, as_type=Pod)

        await metered(worker, count, in_flight)


def decode(path: str) -> dict[str, float]:
    """Decodes a list, then puts it into a cache with an index to measure memory."""
    body = read_list(path)
    decoding.decode_list(body, Pod, PODS)
    meter = Meter()
    page = decoding.decode_list(body, Pod, PODS)
    cost = meter.read()
    del page, body
    before = resident_bytes()
    cache = _cache()
    page = decoding.decode_list(read_list(path), Pod, PODS)
    cache.replace(page.items, page.resource_version)
    del page
    return cost | {"bytes": resident_bytes() - before, "pods": len(cache)}


async def stream(server: str, count: int) -> dict[str, float]:
    """Watch events, processed by a reflector and its cache."""
    cache = _cache()
    seen = 0
    done = asyncio.Event()

    def count_event(_: Pod | None, __: Pod | None) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            done.set()

    cache.subscribe(count_event)
    async with Client(Config(server=server, credentials=StaticCredentials())) as client:
        meter = Meter()
        reflecting = asyncio.create_task(Reflector(client, cache).run())
        await done.wait()
        cost = meter.read()
        reflecting.cancel()
    return cost
