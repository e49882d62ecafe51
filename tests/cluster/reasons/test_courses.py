"""Codes of sets that ran, of sets that compete, and of NVLink domains: each is the code of the condition
`Waiting`, and the first that `grove explain` names while it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from grove import timing
from grove.kube.client.client import Client
from grove.reasons.codes import ReasonCode as Code
from tests.cluster.operator.faults.slow_webhook import slow_webhook
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.world import World
from tests.cluster.reasons.courses import COURSES, OF_SLOW_WRITES, SLOW
from tests.cluster.reasons.explained import explained, wrongly_explained
from tests.cluster.reasons.fabric_causes import OF_FABRIC
from tests.cluster.reasons.seeded import Seeded
from tests.cluster.reasons.test_causes import (
    SCHEDULERS,
    account,
    incomplete,
    no_slow_writes,
    topologies,
    wrong,
)
from tests.namespaces import make_namespace

__all__ = ["account", "no_slow_writes"]

STUCK = 6.0
"""Seconds until a gang that cannot be bound starts over: long enough for others to report that they wait."""


@asynccontextmanager
async def fabric_driver(client: Client) -> AsyncIterator[None]:
    await fabric.install(client)
    try:
        async with fabric.driver(client):
            yield
    finally:
        await fabric.uninstall(client)


@asynccontextmanager
async def slow_writes(client: Client) -> AsyncIterator[None]:
    """Pods of one namespace are admitted when the block is left, or their requests end."""
    await make_namespace(client, SLOW)
    released = asyncio.Event()
    async with slow_webhook(client, SLOW, released.wait):
        try:
            yield
        finally:
            released.set()


@pytest.mark.usefixtures("no_slow_writes")
async def test_each_course_is_the_first_code_of_gang_and_set(
    client: Client, account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "INCOMPLETE_GANG_LIMIT", STUCK)
    causes = (*COURSES, *OF_FABRIC)
    seeded = Seeded(client, causes, "others-of-courses")
    world = World(client, account.config, seeded.others)
    with fabric.short_channel_wait():
        async with (
            seeded.watched(),
            topologies(client),
            fabric_driver(client),
            operating(world, backends=SCHEDULERS, topology_aware=True, fabrics=fabric.NVIDIA),
        ):
            try:
                await seeded.create()
                await seeded.until(lambda: not wrong(seeded) and not incomplete(seeded))
                assert not wrong(seeded), "\n".join(wrong(seeded))
                assert incomplete(seeded) == []
                lasting = tuple(each for each in causes if not each.passing)
                found = await explained(client, lasting)
                assert wrongly_explained(lasting, found) == {}
                codes = [reason.code for reason in found["level-missing"].reasons]
                assert Code.TOPOLOGY_LEVELS_UNAVAILABLE in codes
            finally:
                await seeded.delete()


async def test_slow_writes_are_the_code_of_their_set(client: Client, account) -> None:
    seeded = Seeded(client, (OF_SLOW_WRITES,), "others-of-slow-writes")
    world = World(client, account.config, seeded.others)
    async with seeded.watched(), slow_writes(client), operating(world, backends=SCHEDULERS):
        try:
            await seeded.create()
            assert await seeded.until(lambda: not wrong(seeded)), "\n".join(wrong(seeded))
        finally:
            await seeded.delete()
