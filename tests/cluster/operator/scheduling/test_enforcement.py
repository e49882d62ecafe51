"""The condition `TopologyConstraintsEnforced` of sets and gangs says what enforces constraints, or why
nothing does; with its events."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from grove.api.configuration.types import OnUnsupported, Scheduler, SchedulerProfile
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import EVENTS
from grove.schedulers.registry import SchedulerBackends, backends
from grove.schedulers.unavailable import UnavailableBackend
from tests.cluster.operator.scheduling.test_placement import (
    LEVELS,
    PACKED,
    PLACING,
    account,
    bound,
    gpus,
    racks_of,
    topology,
)
from tests.cluster.operator.scheduling.test_placement_status import DRIFT_LIMIT, relabelled
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import Operator, World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, AnyObject
from tests.cluster.operator.support.workloads import workload

__all__ = ["account"]

UNPLACED = SchedulerProfile(
    "default-scheduler", {"placement": "Off"}, unsupported_constraints=OnUnsupported.WARN
)
WARNING = backends(Scheduler((UNPLACED,)))
FAILING = SchedulerBackends(
    {**PLACING.by_name, "mine": UnavailableBackend("mine", "ImportError: no module named mine")},
    "default-scheduler",
)


def packed(scheduler: str = "", name: str = "mine") -> dict[str, Any]:
    """A set of three pods in one rack."""
    body = workload(name, gpus("worker", 3, 8))
    body["spec"]["template"]["topologyConstraint"] = PACKED
    if scheduler:
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = scheduler
    return body


def enforced(found: AnyObject | None) -> tuple[str, str]:
    """Status and reason of the condition; empty if there is none."""
    conditions = (found.status.get("conditions") if found is not None else None) or ()
    matching = [each for each in conditions if each["type"] == "TopologyConstraintsEnforced"]
    return (matching[0]["status"], matching[0]["reason"]) if matching else ("", "")


async def until_enforced(world: World, *expected: str, name: str = "mine", seconds: float = 60.0) -> None:
    """Wait until the set of this name and its gang have this status and reason."""

    def found() -> bool:
        both = (world.find(SETS, name), world.find(GANGS, f"{name}-0"))
        return all(enforced(each) == tuple(expected) for each in both)

    await world.until(found, f"{expected} on set and gang", seconds)


def emitted(world: World, reason: str) -> set[str]:
    """The kinds of objects that have an event with this reason."""
    return {each.regarding["kind"] for each in world.all(EVENTS) if each.reason == reason}


def running(world: World, in_use: SchedulerBackends) -> AbstractAsyncContextManager[Operator]:
    return operating(world, topology_aware=True, backends=in_use)


@pytest.mark.parametrize(
    ("in_use", "scheduler", "reason", "pods"),
    [
        (WARNING, "", "UnsupportedByScheduler", 3),
        (PLACING, "elsewhere", "SchedulerNotConfigured", 3),
        (FAILING, "mine", "SchedulerObjectFailed", 0),
    ],
    ids=["unsupported", "not configured", "backend cannot be used"],
)
async def test_constraint_that_nothing_enforces_is_reported(
    world: World, client: Client, in_use: SchedulerBackends, scheduler: str, reason: str, pods: int
) -> None:
    await world.watch(EVENTS)
    async with topology(client), running(world, in_use) as operator:
        await world.create(SETS, packed(scheduler))
        await until_enforced(world, "False", reason)
        await world.until(lambda: "PodCliqueSet" in emitted(world, "TopologyConstraintsNotEnforced"), "event")
        await operator.recorder.until_quiet()
        assert len(world.pods()) == pods


async def test_placed_gang_is_enforced_and_others_have_no_condition(world: World, client: Client) -> None:
    async with topology(client), running(world, PLACING) as operator:
        await world.create(SETS, packed())
        await world.create(SETS, workload("free", gpus("worker", 1, 1)))
        await until_enforced(world, "True", "EnforcedByPlacement")
        await world.until_ready()
        await operator.recorder.until_quiet()
        assert enforced(world.get(SETS, "free")) == enforced(world.get(GANGS, "free-0")) == ("", "")
        assert operator.recorder.warnings() == []


async def test_relabelled_node_ends_enforcement_with_events(world: World, client: Client) -> None:
    racks = await racks_of(world)
    await world.watch(EVENTS)
    async with topology(client), running(world, PLACING) as operator:
        await world.create(SETS, packed())
        await world.until_ready()
        await until_enforced(world, "True", "EnforcedByPlacement")
        await operator.recorder.until_quiet()
        node = next(iter(bound(world).values()))
        async with relabelled(client, node, "elsewhere", racks[node]):
            await until_enforced(world, "False", "RequiredDomainsNotMet", seconds=DRIFT_LIMIT)
            await world.until(
                lambda: emitted(world, "TopologyConstraintsNotEnforced") == {"PodCliqueSet", "PodGang"},
                "events",
            )
        await until_enforced(world, "True", "EnforcedByPlacement", seconds=DRIFT_LIMIT)
        await world.until(lambda: emitted(world, "TopologyConstraintsEnforced") == {"PodCliqueSet"}, "event")
        assert len(bound(world)) == 3


async def test_changed_key_is_reported_on_running_gangs(world: World, client: Client) -> None:
    levels = [{"domain": domain, "key": key} for domain, key in LEVELS.items()]
    levels[2]["key"] = "example.com/no-such-label"
    async with topology(client), running(world, PLACING):
        await world.create(SETS, packed())
        await world.until_ready()
        await until_enforced(world, "True", "EnforcedByPlacement")
        pods = bound(world)
        await client.patch(TOPOLOGIES, "local", {"spec": {"levels": levels}}, as_type=Object)
        await until_enforced(world, "False", "RequiredDomainsNotMet")
        assert bound(world) == pods


async def test_deleted_topology_is_an_event_of_its_sets(world: World, client: Client) -> None:
    await world.watch(EVENTS)
    async with topology(client), running(world, PLACING):
        await world.create(SETS, packed())
        await until_enforced(world, "True", "EnforcedByPlacement")
        await client.delete(TOPOLOGIES, "local", as_type=Object)
        await until_enforced(world, "False", "TopologyLevelsUnavailable")
        await world.until(lambda: emitted(world, "TopologyLevelsUnavailable") == {"PodCliqueSet"}, "event")
        assert emitted(world, "TopologyConstraintsNotEnforced") <= {"PodGang"}
        async with topology(client):
            await until_enforced(world, "True", "EnforcedByPlacement")
            await world.until(lambda: emitted(world, "TopologyLevelsAvailable") == {"PodCliqueSet"}, "event")


async def test_gang_waits_for_label_that_no_node_has(world: World, client: Client) -> None:
    levels = [{"domain": domain, "key": key} for domain, key in LEVELS.items()]
    levels[2]["key"] = "example.com/no-such-label"

    def scheduled() -> dict[str, str]:
        found = world.find(GANGS, "mine-0")
        conditions = (found.status.get("conditions") if found is not None else None) or ()
        return next((each for each in conditions if each["type"] == "Scheduled"), {})

    async with topology(client), running(world, PLACING):
        await client.patch(TOPOLOGIES, "local", {"spec": {"levels": levels}}, as_type=Object)
        await world.create(SETS, packed())
        await world.until(lambda: scheduled().get("reason") == "TopologyLabelMissing", "the reason")
        assert "no node has the label example.com/no-such-label" in scheduled()["message"]
        assert bound(world) == {}
        assert world.get(CLIQUES, "mine-0-worker").status.get("lastErrors", ()) == ()
