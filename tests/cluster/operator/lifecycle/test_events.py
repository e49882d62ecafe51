"""The events of pods and gangs that are created and deleted after the first start, as users see them."""

from __future__ import annotations

from grove.kube.client.resource import EVENTS, PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS
from tests.cluster.operator.support.updates import updated
from tests.cluster.operator.support.workloads import clique, group, workload


def emitted(world: World) -> set[tuple[str, str, str]]:
    """The kind and name of the object of each event, and its note."""
    found = (event for event in world.all(EVENTS) if event.reason.endswith("Successful"))
    return {(event.regarding["kind"], event.regarding["name"], event.note) for event in found}


async def test_later_creates_and_deletes_emit_events(world: World) -> None:
    await world.watch(EVENTS)
    body = workload("w", clique("a"), clique("b", 2, 1), groups=(group("x", 2, 1, "b"),), replicas=2)
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        first = {pod.name for pod in world.all(PODS)}
        assert emitted(world) == set(), "the first start emits none"
        await world.delete(PODS, next(name for name in sorted(first) if name.startswith("w-0-a-")))
        await world.until(lambda: len(emitted(world)) == 1, "a pod created in place of a deleted one")
        (new,) = {pod.name for pod in world.all(PODS)} - first
        of_pod = ("PodClique", "w-0-a", f"Created pod {new}")
        assert emitted(world) == {of_pod}
        await world.until_ready()
        await world.scale(CLIQUES, "w-0-x-0-b", 1)
        await world.until(lambda: len(emitted(world)) == 2, "a pod deleted by a scale-in of its clique")
        (of_clique,) = emitted(world) - {of_pod}
        assert of_clique[:2] == ("PodClique", "w-0-x-0-b")
        assert of_clique[2].startswith("Deleted pod w-0-x-0-b-")
        await world.scale(GROUPS, "w-0-x", 1)
        await world.scale(SETS, "w", 1)
        await world.until_ready()
        await operator.recorder.until_quiet()
        await world.until(lambda: len(emitted(world)) == 4, "the gangs of deleted replicas")
    gangs = {("PodCliqueSet", "w", f"Deleted PodGang {name}") for name in ("w-0-x-0", "w-1")}
    assert emitted(world) == {of_pod, of_clique, *gangs}


async def test_update_emits_one_event_for_each_replaced_unit(world: World) -> None:
    await world.watch(EVENTS)
    body = workload("w", clique("a"), clique("b", 2), clique("c"), groups=(group("x", 2, 1, "b", "c"),))
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        template = world.get(SETS, "w").spec["template"]
        for each in template["cliques"]:
            each["spec"]["podSpec"]["containers"][0]["image"] = "next:1"
        await world.patch(SETS, "w", {"spec": {"template": template}})
        await world.until(lambda: updated(world, "w"))
        await operator.recorder.until_quiet()
        await world.until(lambda: len(emitted(world)) >= 3, "the events of three units")
    found = {(kind, name, note.partition(":")[0].partition(" in ")[0]) for kind, name, note in emitted(world)}
    (pod,) = (pod.name for pod in world.all(PODS) if pod.name.startswith("w-0-a-"))
    assert found == {
        ("PodClique", "w-0-a", f"Created pod {pod}"),
        ("PodCliqueScalingGroup", "w-0-x", "Created 3 pods of replica 0"),
        ("PodCliqueScalingGroup", "w-0-x", "Created 3 pods of replica 1"),
    }
