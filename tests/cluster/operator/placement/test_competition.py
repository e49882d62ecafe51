"""Gangs compete for nodes with each other and with a storm of foreign pods, on the unmodified scheduler with
its default client limits.

Judged from the audit log, in which the writes of all clients have the times of the API server. An ordinary
run tries a dozen gangs in each test. GROVE_CAMPAIGN=n tries n times 200 gangs on 500 nodes; 5 is 1,000 tries.
GROVE_CAMPAIGN_NODES sets another number of nodes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest
import structlog

from grove.api.naming import labels
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import PLACING as PLACING_VALUES
from tests.chart import operator_account_of
from tests.cluster.operator.placement.audit import pod_writes, pods_audited
from tests.cluster.operator.placement.audited_gangs import GangHistory
from tests.cluster.operator.placement.placed_gangs import PLACING
from tests.cluster.operator.placement.storm import HIGH, LOW, create_priorities, foreign_pod, raging
from tests.cluster.operator.scheduling.test_placement import PACKED, gpus, topology
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.objects import SETS, gated
from tests.cluster.operator.support.workloads import Body, workload
from tests.cluster.scheduler_process import restart_scheduler
from tests.cluster.schedulers.native import install_crds
from tests.clusters import Clusters
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

CAMPAIGN = int(os.environ.get("GROVE_CAMPAIGN") or 0)
PODS_OF_A_GANG = 4
LIMIT = 5.0
"""Seconds for which a gang may have some of its pods bound."""
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


def large(nodes: int) -> Size:
    """A run of a campaign."""
    return Size(nodes, f"1x2x{nodes // 20}x10", 200, 300, nodes * 3, 60.0)


SIZE = large(int(os.environ.get("GROVE_CAMPAIGN_NODES") or 500)) if CAMPAIGN else SMALL


@pytest.fixture(scope="module")
def contended() -> Iterator[LocalCluster]:
    """A cluster for this module, whose audit log has the writes of all pods."""
    own = Clusters()
    try:
        with pods_audited():
            started = own.start_now("competition", nodes=SIZE.nodes, shape=SIZE.shape, audit=True)
        yield started
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


def whole_gangs(world: World) -> set[str]:
    """The gangs all of whose pods have nodes."""
    bound = Counter(pod.labels.get(labels.GANG) for pod in world.pods() if pod.spec.get("nodeName"))
    return {gang for gang, count in bound.items() if gang and count == PODS_OF_A_GANG}


async def compete(world: World, priorities: tuple[str, ...], seed: int) -> None:
    """Create gangs in a storm, which ends before the last of them are whole. Every second one must be in one
    rack. Gangs that are whole are deleted, to make room for others; those that need an empty rack may find
    none before the storm is over."""
    storm = {"rate": SIZE.rate, "limit": SIZE.limit, "priorities": priorities, "seed": seed}
    deleted: set[str] = set()
    async with raging(world.client, f"storm-{next(_numbers)}", **storm):
        await asyncio.sleep(1.0)  # the first pods of the storm are in flight
        for number in range(SIZE.gangs):
            body = workload(f"{seed}-{number}", gpus("worker", PODS_OF_A_GANG, 4 + 4 * (number % 4 // 2)))
            if number % 2:
                body["spec"]["template"]["topologyConstraint"] = PACKED
            await world.create(SETS, body)
            await asyncio.sleep(SIZE.seconds / SIZE.gangs)
            await _delete_whole_gangs(world, deleted)
    while len(deleted) < SIZE.gangs:
        await world.until(lambda: whole_gangs(world) - deleted, "the next gang")
        await _delete_whole_gangs(world, deleted)


async def _delete_whole_gangs(world: World, deleted: set[str]) -> None:
    for name in whole_gangs(world) - deleted:
        await world.delete(SETS, name.removesuffix("-0"))
        deleted.add(name)


def history_of(world: World, cluster: LocalCluster) -> GangHistory:
    """What the audit log says about the gangs of the test."""
    return GangHistory(world.namespace, PODS_OF_A_GANG).read(pod_writes(cluster.state.audit_log))


async def compete_often(world: World, cluster: LocalCluster, *priorities: str) -> GangHistory:
    """The history of gangs that compete with foreign pods of these priorities."""
    for seed in range(CAMPAIGN or 1):
        await compete(world, priorities, seed)
    history = history_of(world, cluster)
    half, longest = history.half_bound, history.longest_incomplete
    log.info("gangs", tries=len(history.gangs), half_bound=len(half), longest_incomplete=f"{longest:.2f} s")
    for what, gangs in (("half bound", half), ("slow", history.slow(LIMIT))):
        if gangs:
            log.warning(what, gangs=gangs, writes=history.explain(gangs))
    assert len(history.gangs) == SIZE.gangs * (CAMPAIGN or 1)
    return history


@pytest.mark.proves("gang", scheduler="default-scheduler")
async def test_no_gang_stays_half_bound_among_equal_pods(world: World, contended: LocalCluster) -> None:
    history = await compete_often(world, contended, "")
    assert history.longest_incomplete <= LIMIT


async def test_no_gang_stays_half_bound_among_lower_pods(world: World, contended: LocalCluster) -> None:
    """Gangs preempt pods of lower priority."""
    history = await compete_often(world, contended, "", LOW)
    assert history.longest_incomplete <= LIMIT


async def test_gangs_end_whole_among_pods_of_higher_priority(world: World, contended: LocalCluster) -> None:
    """Gangs lose nodes to pods of higher priority: those that are not completed in time start over."""
    history = await compete_often(world, contended, "", LOW, HIGH)
    assert history.longest_incomplete <= 10.0


async def test_gangs_end_whole_despite_scheduler_restarts(world: World, contended: LocalCluster) -> None:
    async def restart() -> None:
        for _ in range(3):
            await asyncio.sleep(SIZE.seconds / 4)
            await restart_scheduler(contended)

    restarts = asyncio.create_task(restart())
    history = await compete_often(world, contended, "")
    await restarts
    assert history.longest_incomplete <= 10.0


def prioritized(name: str, priority: str) -> Body:
    """A gang that needs four whole nodes."""
    body = workload(name, gpus("worker", PODS_OF_A_GANG, 8))
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["priorityClassName"] = priority
    return body


async def test_high_priority_gang_displaces_a_low_one_whole(world: World, contended: LocalCluster) -> None:
    for number in range(SIZE.nodes - PODS_OF_A_GANG):
        await world.create(PODS, foreign_pod(f"foreign-{number}", 8, HIGH))
    await world.until(lambda: all(pod.spec.get("nodeName") for pod in world.pods()), "full nodes")
    await world.create(SETS, prioritized("low", LOW))
    await world.until(lambda: whole_gangs(world) == {"low-0"}, "the gang of low priority")
    await world.create(SETS, prioritized("high", HIGH))
    await world.until(lambda: whole_gangs(world) == {"high-0"}, "the gang of high priority")
    await world.until(
        lambda: list(map(gated, world.pods(part_of="low"))) == [True] * PODS_OF_A_GANG,
        "all pods of the other gang waiting",
    )
    history = history_of(world, contended)
    assert history.half_bound == []
    assert history.longest_incomplete <= LIMIT
