"""Existing replicas keep their scheduler if the default changes or the configuration no longer lists it."""

from __future__ import annotations

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.resource import EVENTS, PODS
from grove.operator.caches.resources import external_resource
from grove.schedulers.kai import POD_GROUP
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, AnyObject
from tests.cluster.operator.support.workloads import clique, workload

POD_GROUPS = external_resource(POD_GROUP)
KAI = (SchedulerProfile("kai-scheduler"),)
BEFORE, AFTER = backends(Scheduler(KAI)), backends(Scheduler(KAI, "kai-scheduler"))
UNLISTED = backends(Scheduler())
WORDS = "scheduler kai-scheduler is not in the operator's configuration, no objects are written for it"


def schedulers(world: World, gang: str) -> set[str]:
    """The scheduler names of a gang's pods and of the gang itself."""
    named = {pod.spec["schedulerName"] for pod in world.pods(gang=gang)}
    found = world.find(GANGS, gang)
    return named | {found.labels["grove.io/scheduler-name"] if found is not None else ""}


def has_error(found: AnyObject | None, words: str = WORDS) -> bool:
    """Whether the last errors contain the message."""
    errors = (found.status.get("lastErrors") or ()) if found is not None else ()
    return any(words in error["description"] for error in errors)


def is_reported_on_gang(world: World, gang: str) -> bool:
    """Whether a condition of the gang has the message."""
    return any(
        WORDS in condition["message"] for condition in world.get(GANGS, gang).status.get("conditions") or ()
    )


async def test_gang_keeps_its_scheduler_after_default_changes(world: World) -> None:
    body = workload("w", clique("a", 2, 2))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    async with operating(world, backends=BEFORE):
        await world.create(SETS, body)
        await world.until_ready()
    async with operating(world, backends=AFTER):
        lost = world.pods()[0]
        await world.delete(PODS, lost.name)
        await world.until(
            lambda: world.find(PODS, lost.name) is None and world.all_ready(), "its replacement"
        )
        assert schedulers(world, "w-0") == {"default-scheduler"}
        await world.patch(SETS, "w", {"spec": {"replicas": 2}})
        await world.until(lambda: len(world.pods(gang="w-1")) == 2, "a replica created after the change")
        assert schedulers(world, "w-1") == {"kai-scheduler"}
        await world.until(lambda: world.names(POD_GROUPS) == ["w-1"], "its PodGroup")
        assert schedulers(world, "w-0") == {"default-scheduler"}


async def test_unlisted_scheduler_is_reported_until_listed_again(
    world: World,
) -> None:
    await world.watch(EVENTS)
    body = workload("w", clique("a", 2, 2), replicas=2)
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    async with operating(world, backends=AFTER):
        await world.create(SETS, body)
        await world.until(
            lambda: len(world.pods()) == 4 and world.get(SETS, "w").settled, "gangs that wait for KAI"
        )
    before = {pod.uid for pod in world.pods(gang="w-0")}
    async with operating(world, backends=UNLISTED):
        await world.until(lambda: has_error(world.get(SETS, "w"), f"replicas 0, 1: {WORDS}"), "the set")
        for index in range(2):
            await world.until(lambda n=index: has_error(world.get(CLIQUES, f"w-{n}-a")), "the clique")
            await world.until(lambda n=index: is_reported_on_gang(world, f"w-{n}"), "the gang")
        await world.until(
            lambda: (
                {
                    event.regarding["name"]
                    for event in world.all(EVENTS)
                    if event.reason == "SchedulerSyncFailed" and WORDS in event.note
                }
                == {"w-0", "w-1"}
            ),
            "an event on each gang",
        )
        await world.patch(SETS, "w", {"spec": {"replicas": 1}})
        await world.until(lambda: not world.names(PODS, gang="w-1"), "the replica to be deleted")
        await world.patch(SETS, "w", {"spec": {"replicas": 2}})
        await world.until(
            lambda: len(world.pods(gang="w-1")) == 2 and schedulers(world, "w-1") == {"default-scheduler"},
            "the replica to be created for the other scheduler",
        )
        await world.until(
            lambda: has_error(world.get(SETS, "w"), f"replica 0: {WORDS}"),
            "only the first replica in the error",
        )
        await world.until(lambda: not has_error(world.find(CLIQUES, "w-1-a")), "no error on the new clique")
    async with operating(world, backends=AFTER):
        await world.until(
            lambda: not has_error(world.get(SETS, "w")) and not has_error(world.get(CLIQUES, "w-0-a")),
            "no errors",
        )
        await world.until(lambda: not is_reported_on_gang(world, "w-0"), "no message on the gang")
        assert {pod.uid for pod in world.pods(gang="w-0")} == before
        assert schedulers(world, "w-0") == {"kai-scheduler"}
