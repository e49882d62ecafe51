"""Gangs compete for nodes with each other and with a storm of foreign pods, on the unmodified scheduler with
its default client limits.

An ordinary run tries a dozen gangs; GROVE_CAMPAIGN=n tries n times 200 gangs on 500 nodes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest
import structlog

from grove import timing
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import PLACING as PLACING_VALUES
from tests.chart import operator_account_of
from tests.cluster.operator.placement.gang_history import GangHistory, recording_gangs
from tests.cluster.operator.placement.storm import HIGH, LOW, create_priorities, raging
from tests.cluster.operator.scheduling.test_placement import PACKED, PLACING, gpus, topology
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import workload
from tests.cluster.schedulers.native import install_crds
from tests.cluster.schedulers.scheduler_process import restart_scheduler
from tests.clusters import Clusters
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

CAMPAIGN = int(os.environ.get("GROVE_CAMPAIGN") or 0)
PODS_OF_A_GANG = 4
log = structlog.get_logger("tests")
_numbers = itertools.count(1)


class Size(NamedTuple):
    """How large a run is."""

    nodes: int
    shape: str
    gangs: int
    rate: int
    """Foreign pods per second."""
    limit: int
    """Foreign pods at once."""
    seconds: float
    """How long the storm lasts."""


SMALL = Size(40, "1x2x5x4", 12, 100, 150, 4.0)
LARGE = Size(500, "1x5x10x10", 200, 300, 1500, 60.0)
SIZE = LARGE if CAMPAIGN else SMALL


@pytest.fixture(scope="module")
def contended() -> Iterator[LocalCluster]:
    """A cluster for this module."""
    own = Clusters()
    try:
        yield own.start_now("competition", nodes=SIZE.nodes, shape=SIZE.shape)
    finally:
        own.stop_all()


@pytest.fixture
async def world(contended: LocalCluster) -> AsyncIterator[World]:
    """A namespace with an operator that places gangs. The scheduler has its default client limits."""
    await restart_scheduler(contended)
    async with Client(config.load(contended.kubeconfig)) as client:
        await install_crds(client)
        await create_priorities(client)
        name = f"gangs-{next(_numbers)}"
        await make_namespace(client, name)
        account = await operator_account_of(contended, PLACING_VALUES)
        async with (
            watching(client, account.config, name) as world,
            topology(client),
            operating(world, topology_aware=True, backends=PLACING),
        ):
            yield world


async def compete(world: World, priorities: tuple[str, ...], seed: int = 0) -> GangHistory:
    """Create gangs in a storm, which ends before the last of them are whole. Every second one must be in one
    rack. A gang that is whole is deleted, to make room for others."""
    storm = {"rate": SIZE.rate, "limit": SIZE.limit, "priorities": priorities, "seed": seed}
    async with recording_gangs(world, PODS_OF_A_GANG) as history:
        ended = asyncio.create_task(_delete_when_whole(world, history))
        async with raging(world.client, f"storm-{next(_numbers)}", **storm):
            await asyncio.sleep(1.0)  # the first pods of the storm are in flight
            for number in range(SIZE.gangs):
                body = workload(f"{seed}-{number}", gpus("worker", PODS_OF_A_GANG, 4 + 4 * (number % 4 // 2)))
                if number % 2:
                    body["spec"]["template"]["topologyConstraint"] = PACKED
                await world.create(SETS, body)
                await asyncio.sleep(SIZE.seconds / SIZE.gangs)
        await ended
    return history


async def _delete_when_whole(world: World, history: GangHistory) -> None:
    deleted: set[str] = set()
    while len(deleted) < SIZE.gangs:
        await world.until(lambda: set(history.whole) - deleted, "the next gang")
        for name in set(history.whole) - deleted:
            await world.delete(SETS, name.removesuffix("-0"))
            deleted.add(name)


async def compete_often(world: World, *priorities: str) -> tuple[list[str], float]:
    """The gangs that were ever half bound, and the longest time for which a gang was incomplete."""
    half: list[str] = []
    longest = 0.0
    for seed in range(CAMPAIGN or 1):
        history = await compete(world, priorities, seed)
        half += history.half_bound
        if history.half_bound:
            log.warning("half bound", events=history.explain())
        longest = max(longest, history.longest_incomplete())
    tries = SIZE.gangs * (CAMPAIGN or 1)
    log.info("gangs in a storm", tries=tries, half_bound=len(half), longest_incomplete=f"{longest:.2f} s")
    return half, longest


@pytest.mark.proves("gang", scheduler="default-scheduler")
async def test_no_gang_stays_half_bound_among_equal_pods(world: World) -> None:
    """How many were half bound for a moment is logged: about one of 300 gangs, for 0.2 s."""
    _, longest = await compete_often(world, "")
    assert longest <= 5.0


async def test_gangs_end_whole_among_pods_of_other_priorities(world: World) -> None:
    """Gangs preempt pods of lower priority and lose nodes to those of higher priority. A gang that is not
    completed in time is deleted, and starts over."""
    _, longest = await compete_often(world, "", LOW, HIGH)
    assert longest <= timing.INCOMPLETE_GANG_LIMIT + 10.0


async def test_gangs_end_whole_despite_scheduler_restarts(world: World, contended: LocalCluster) -> None:
    async def restart() -> None:
        for _ in range(3):
            await asyncio.sleep(SIZE.seconds / 4)
            await restart_scheduler(contended)

    restarts = asyncio.create_task(restart())
    _, longest = await compete_often(world, "")
    await restarts
    assert longest <= timing.INCOMPLETE_GANG_LIMIT + 10.0
