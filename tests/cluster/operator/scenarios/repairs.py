"""What somebody or something did to the parts of a set is mended; what fails is replaced in its place."""

from __future__ import annotations

from typing import Any

from grove.api.naming import labels
from grove.kube.client.client import JSON
from grove.kube.client.resource import PODS, SERVICES, Resource
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS, AnyObject
from tests.cluster.operator.support.state_snapshot import take_snapshot
from tests.cluster.operator.support.workloads import clique, small, workload

OUT_OF_SERVICE = {"status": {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"}}


def pod_at(world: World, clique_name: str, index: int) -> AnyObject:
    (found,) = (pod for pod in world.pods(clique=clique_name) if pod.labels[labels.POD_INDEX] == str(index))
    return found


async def pods_deleted_by_hand(world: World) -> None:
    await world.create(SETS, workload("w", clique("a", 3)))
    await world.rest("made", 3)
    for index in (1, 0, 2):
        lost = pod_at(world, "w-0-a", index)
        await world.delete(PODS, lost.name)
        await world.until(lambda lost=lost: world.gone(PODS, lost), "the pod gone")
        await world.rest(f"pod {index} back", 3)
        back = pod_at(world, "w-0-a", index)
        assert back.uid != lost.uid
        assert back.spec["hostname"] == lost.spec["hostname"]


async def a_pod_that_was_evicted(world: World) -> None:
    await world.create(SETS, workload("w", clique("a", 3)))
    await world.rest("made", 3)
    failed = pod_at(world, "w-0-a", 1)
    others = {pod.uid for pod in world.pods()} - {failed.uid}
    await world.patch(PODS, failed.name, OUT_OF_SERVICE, subresource="status")
    await world.until(lambda: world.gone(PODS, failed), "the pod gone")
    await world.rest("replaced", 3)
    assert {pod.uid for pod in world.pods()} == others | {pod_at(world, "w-0-a", 1).uid}


def labelled(**words: str | None) -> dict[str, Any]:
    keys = {
        "part_of": labels.PART_OF,
        "component": labels.COMPONENT,
        "managed_by": labels.MANAGED_BY,
        "replica": labels.SET_REPLICA,
        "group": labels.GROUP,
        "scheduler": labels.SCHEDULER,
    }
    return {"metadata": {"labels": {keys[key]: value for key, value in words.items()}}}


MEDDLING: list[tuple[Resource, str, dict[str, Any]]] = [
    (CLIQUES, "small-0-router", labelled(part_of="else")),
    (CLIQUES, "small-0-router", labelled(component=None)),
    (CLIQUES, "small-0-router", labelled(managed_by=None)),
    (CLIQUES, "small-0-router", labelled(group="small-0-model")),
    (CLIQUES, "small-0-model-0-leader", labelled(group=None)),
    (CLIQUES, "small-0-router", {"spec": {"roleName": "emperor"}}),
    (GROUPS, "small-0-model", {"spec": {"cliqueNames": ["leader"]}}),
    (GROUPS, "small-0-model", labelled(replica="7")),
    (GROUPS, "small-0-model", labelled(managed_by=None)),
    (GANGS, "small-0", {"spec": {"podgroups": []}}),
    (GANGS, "small-0", labelled(scheduler="other")),
    (GANGS, "small-0", labelled(replica=None)),
    (GANGS, "small-0-model-0", labelled(managed_by=None)),
    (SERVICES, "small-0", {"spec": {"selector": {"app": "other"}}}),
    (SERVICES, "small-0", labelled(component="other")),
    (SERVICES, "small-0", labelled(managed_by="other")),
    (SERVICES, "small-0", labelled(replica="1")),
]


STATUSES: list[tuple[Resource, str, dict[str, Any]]] = [
    (SETS, "small", {"availableReplicas": 7}),
    (GROUPS, "small-0-model", {"scheduledReplicas": 7}),
    (CLIQUES, "small-0-router", {"readyReplicas": 7}),
    (GANGS, "small-0", {"phase": "Pending"}),
]
"""What a leader of yesterday might still say."""


async def _told_wrongly(world: World, resource: Resource, name: str, status: dict[str, Any]) -> None:
    right = {field: world.get(resource, name).status[field] for field in status}
    wrong = await world.patch(resource, name, {"status": status}, subresource="status")

    def is_right() -> bool:
        found = world.get(resource, name)
        later = int(found.metadata.resource_version) > int(wrong.metadata.resource_version)
        return later and right.items() <= found.status.items()

    await world.until(is_right, f"{resource.kind} {name} to tell {right}")


async def parts_changed_by_hand(world: World) -> None:
    await world.create(SETS, small())
    await world.rest("made", 5)
    before, pods = take_snapshot(world), {pod.uid for pod in world.pods()}
    for resource, name, status in STATUSES:
        await _told_wrongly(world, resource, name, status)
    for resource, name, change in MEDDLING:
        await world.patch(resource, name, change)
        await world.until_like(before)
        assert {pod.uid for pod in world.pods()} == pods, f"pods paid for {resource.kind} {change}"
    await world.rest("set right", 5)


async def a_relabelled_pod(world: World) -> None:
    await world.create(SETS, small())
    await world.rest("made", 5)
    before = take_snapshot(world)
    pod = world.pods(clique="small-0-model-1-worker")[0]
    for key in (
        labels.MANAGED_BY,
        labels.PART_OF,
        labels.SET_REPLICA,
        labels.CLIQUE,
        labels.GANG,
        labels.BASE_GANG,
        labels.GROUP,
        labels.POD_INDEX,
        labels.COMPONENT,
    ):
        for value in (None, "1"):
            await world.patch(PODS, pod.name, {"metadata": {"labels": {key: value}}})
            await world.until_like(before)
            assert world.get(PODS, pod.name).uid == pod.uid, f"it paid for {key}"
    await world.rest("in its place", 5)


async def deleted_parts(world: World) -> None:
    await world.create(SETS, small())
    await world.rest("made", 5)
    parts = [
        (SERVICES, "small-0"),
        (GANGS, "small-0"),
        (GANGS, "small-0-model-0"),
        (CLIQUES, "small-0-router"),
        (CLIQUES, "small-0-model-1-worker"),
        (GROUPS, "small-0-model"),
    ]
    for resource, name in parts:
        if resource is CLIQUES:
            await world.parent_goes()
        lost = world.get(resource, name).uid
        await world.delete(resource, name)
        await world.until(
            lambda resource=resource, name=name, lost=lost: (
                (found := world.find(resource, name)) and found.uid != lost
            ),
            f"another {resource.kind} {name}",
        )
        await world.rest(f"{resource.kind} {name}", 5)


async def every_pod_at_once(world: World) -> None:
    await world.create(SETS, small(replicas=3))
    await world.rest("made", 15)
    before = {pod.uid for pod in world.pods()}
    await world.client.delete_collection(PODS, namespace=world.namespace, labels="")
    await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)}, "the old pods gone")
    await world.rest("all back", 15)


async def a_foreign_finalizer_on_a_pod(world: World) -> None:
    """A pod that cannot go is replaced all the same, in its place."""
    await world.create(SETS, workload("w", clique("a", 2)))
    await world.rest("made", 2)
    held = pod_at(world, "w-0-a", 0)
    await world.patch(PODS, held.name, {"metadata": {"finalizers": ["example.com/hold"]}})
    await world.delete(PODS, held.name)
    await world.until(
        lambda: len(world.pods()) == 2 and world.get(CLIQUES, "w-0-a").status["readyReplicas"] == 2
    )
    assert pod_at(world, "w-0-a", 0).uid != held.uid
    await world.patch(PODS, held.name, [{"op": "remove", "path": "/metadata/finalizers"}], kind=JSON)
    await world.rest("let go", 2)


SCENARIOS = {
    "pods deleted by hand": pods_deleted_by_hand,
    "a pod that was evicted": a_pod_that_was_evicted,
    "parts changed by hand": parts_changed_by_hand,
    "a relabelled pod": a_relabelled_pod,
    "deleted parts": deleted_parts,
    "every pod at once": every_pod_at_once,
    "a foreign finalizer on a pod": a_foreign_finalizer_on_a_pod,
}
