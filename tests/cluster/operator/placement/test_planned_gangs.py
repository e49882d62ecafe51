"""`grove plan` agrees with what then happens: verdict, and domain of each unit with a required level, for
random sets on a cluster that others use at random, with the default scheduler and nothing else moving.

An ordinary run tries a few sets. GROVE_CAMPAIGN=n tries n times 200.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import pytest
import structlog

from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.cluster_state.reading import read_state
from grove.dry_run.documents import Document
from grove.dry_run.model import PlannedGang, PlannedUnit, Verdict, WorkloadPlan
from grove.dry_run.planning import Planner
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from tests.cluster.operator.placement.placed_gangs import PLACING
from tests.cluster.operator.scheduling.test_placement import topology
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS, AnyObject
from tests.dry_run.random_workloads import Body, foreign_pod, random_set, random_use

SETS_TRIED = 200 * int(os.environ.get("GROVE_CAMPAIGN") or 0) or 6
IN_ONE_TEST = min(SETS_TRIED, 20)
SETUP = operator_setup()
KINDS = kinds_of(new_caches(SETUP), "none")
log = structlog.get_logger("tests")
Domains = tuple[tuple[str, ...], ...]
"""The units of a replica, with the domains of their required levels."""


@pytest.fixture
async def placing(world: World, client: Client) -> AsyncIterator[World]:
    """An operator that places gangs."""
    async with topology(client), operating(world, topology_aware=True, backends=PLACING):
        yield world


async def plan(world: World, body: Body) -> WorkloadPlan:
    state = await read_state(world.client, KINDS, world.namespace)
    assert state.unread == ()
    report = await Planner(state, SETUP, state.taken_at).plan([Document(PodCliqueSet.KIND, body)])
    return report.plans[0]


async def use(world: World, random: Random, nodes: list[str]) -> list[str]:
    """Pods of others on random nodes; returns their names."""
    names = []
    for number, (node, gpus) in enumerate(random_use(random, nodes)):
        names.append(f"other-{number}")
        await world.create(PODS, foreign_pod(names[-1], node, gpus, world.namespace))
    return names


def message(world: World, gang: str) -> str:
    found = world.get(GANGS, gang) if gang in world.names(GANGS) else None
    conditions = found.status.get("conditions", ()) if found is not None else ()
    return next((each["message"] for each in conditions if each["type"] == "Scheduled"), "")


def nodes_of(world: World, gang: str) -> list[str]:
    pods = (pod for pod in world.pods() if pod.labels.get(labels.GANG) == gang)
    return [pod.spec["nodeName"] for pod in pods if pod.spec.get("nodeName")]


def is_as_planned(world: World, gang: PlannedGang) -> bool:
    """Whether a gang is bound as far as it was planned to be, or waits as it was planned to."""
    if gang.placed:
        return len(nodes_of(world, gang.name)) == gang.pods - gang.unplaced
    if gang.refused:
        return "no place" in message(world, gang.name) and not nodes_of(world, gang.name)
    return not nodes_of(world, gang.name)


def bound_domains(
    world: World, gang: PlannedGang, unit: PlannedUnit, node_labels: dict[str, dict[str, str]]
) -> set[str]:
    """The values of a unit's level on the nodes of its pods. A group replica may have the name of a gang."""

    def belongs(pod: AnyObject) -> bool:
        given = pod.labels
        group = f"{given.get(labels.GROUP)}-{given.get(labels.GROUP_REPLICA)}"
        return unit is gang.units[0] or unit.name in (given.get(labels.CLIQUE), group)

    pods = [pod for pod in world.pods(gang=gang.name) if belongs(pod) and pod.spec.get("nodeName")]
    return {node_labels[pod.spec["nodeName"]][unit.required] for pod in pods}


@pytest.mark.parametrize("first", range(0, SETS_TRIED, IN_ONE_TEST))
async def test_plan_agrees_with_what_then_happens(placing: World, first: int) -> None:
    world, tried = placing, list[str]()
    found = (await world.client.list(NODES, as_type=Object)).items
    node_labels = {node.metadata.name: dict(node.metadata.labels) for node in found}
    for seed in range(first, first + IN_ONE_TEST):
        random = Random(seed)
        others = await use(world, random, sorted(node_labels))
        await world.until(lambda: len(world.all(PODS)) == len(others), "the pods of others")  # noqa: B023
        body = random_set(random, f"wl{seed}", world.namespace)
        planned = await plan(world, body)
        await world.create(SETS, body)
        # What depends on the choices of the scheduler is not known before.
        gangs = [gang for gang in planned.gangs if not gang.depends]
        for gang in gangs:
            await world.until(
                lambda: is_as_planned(world, gang),  # noqa: B023
                f"seed {seed}: {gang.name} as planned: {gang}",
            )
        expected, found_domains = Counter[Domains](), Counter[Domains]()
        for replica in range(body["spec"]["replicas"]):
            own = [gang for gang in gangs if gang.name.startswith(f"wl{seed}-{replica}")]
            units = [(gang, unit) for gang in own for unit in gang.units if unit.required]
            cut = len(f"wl{seed}-{replica}")
            expected[tuple((unit.name[cut:], unit.domain[-1]) for _, unit in units)] += 1
            found_domains[
                tuple(
                    (unit.name[cut:], *sorted(bound_domains(world, gang, unit, node_labels)))
                    for gang, unit in units
                )
            ] += 1
        # Replicas are equal: which one is decided on first depends on which one reports first.
        assert found_domains == expected, seed
        tried.append(planned.verdict)
        await world.delete(SETS, f"wl{seed}")
        for name in others:
            await world.delete(PODS, name)
        await world.until(lambda: not world.all(PODS), "an empty namespace")
    log.info("planned", **{verdict: tried.count(verdict) for verdict in Verdict})
    assert {Verdict.FITS, Verdict.DOES_NOT_FIT} <= set(tried)
    assert tried.count(Verdict.UNKNOWN) <= len(tried) // 4
