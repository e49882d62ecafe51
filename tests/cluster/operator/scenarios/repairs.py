"""Repair: edited objects of a set are restored, deleted ones are created again, failed pods are replaced at
the same index."""

from __future__ import annotations

from typing import Any

from grove.api.naming import labels
from grove.kube.client.client import JSON
from grove.kube.client.resource import PODS, SERVICES, Resource
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS, AnyObject
from tests.cluster.operator.support.state_snapshot import take_snapshot
from tests.cluster.operator.support.workloads import clique, small, workload
from tests.namespaces import delete_all

EVICTED = {"status": {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"}}


def pod_at(world: World, clique_name: str, index: int) -> AnyObject:
    (found,) = (pod for pod in world.pods(clique=clique_name) if pod.labels[labels.POD_INDEX] == str(index))
    return found


async def deleted_pods(world: World) -> None:
    await world.create(SETS, workload("w", clique("a", 3)))
    await world.checkpoint("created", 3)
    for index in (1, 0, 2):
        lost = pod_at(world, "w-0-a", index)
        await world.delete(PODS, lost.name)
        await world.until(lambda lost=lost: world.gone(PODS, lost), "the pod deleted")
        await world.checkpoint(f"pod {index} replaced", 3)
        successor = pod_at(world, "w-0-a", index)
        assert successor.uid != lost.uid
        assert successor.spec["hostname"] == lost.spec["hostname"]


async def evicted_pod(world: World) -> None:
    await world.create(SETS, workload("w", clique("a", 3)))
    await world.checkpoint("created", 3)
    failed = pod_at(world, "w-0-a", 1)
    others = {pod.uid for pod in world.pods()} - {failed.uid}
    await world.patch(PODS, failed.name, EVICTED, subresource="status")
    await world.until(lambda: world.gone(PODS, failed), "the pod deleted")
    await world.checkpoint("replaced", 3)
    assert {pod.uid for pod in world.pods()} == others | {pod_at(world, "w-0-a", 1).uid}


def labelled(**values: str | None) -> dict[str, Any]:
    keys = {
        "part_of": labels.PART_OF,
        "component": labels.COMPONENT,
        "managed_by": labels.MANAGED_BY,
        "replica": labels.SET_REPLICA,
        "group": labels.GROUP,
        "scheduler": labels.SCHEDULER,
    }
    return {"metadata": {"labels": {keys[key]: value for key, value in values.items()}}}


EDITS: list[tuple[Resource, str, dict[str, Any]]] = [
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
"""Outdated values, such as a former leader may still write."""


async def _until_status_restored(world: World, resource: Resource, name: str, status: dict[str, Any]) -> None:
    right = {field: world.get(resource, name).status[field] for field in status}
    wrong = await world.patch(resource, name, {"status": status}, subresource="status")

    def is_right() -> bool:
        found = world.get(resource, name)
        later = int(found.metadata.resource_version) > int(wrong.metadata.resource_version)
        return later and right.items() <= found.status.items()

    await world.until(is_right, f"{right} in the status of {resource.kind} {name}")


async def edited_objects(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    before, pods = take_snapshot(world), {pod.uid for pod in world.pods()}
    for resource, name, status in STATUSES:
        await _until_status_restored(world, resource, name, status)
    for resource, name, change in EDITS:
        await world.patch(resource, name, change)
        await world.until_snapshot(before)
        assert {pod.uid for pod in world.pods()} == pods, f"{resource.kind} {change} restarts pods"
    await world.checkpoint("restored", 5)


async def relabelled_pod(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
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
            await world.until_snapshot(before)
            assert world.get(PODS, pod.name).uid == pod.uid, f"a change of {key} restarts it"
    await world.checkpoint("restored", 5)


async def deleted_objects(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
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
            await world.stop_comparing_deletes()
        lost = world.get(resource, name).uid
        await world.delete(resource, name)
        await world.until(
            lambda resource=resource, name=name, lost=lost: (
                (found := world.find(resource, name)) and found.uid != lost
            ),
            f"a new {resource.kind} {name}",
        )
        await world.checkpoint(f"{resource.kind} {name}", 5)


async def all_pods_deleted_at_once(world: World) -> None:
    await world.create(SETS, small(replicas=3))
    await world.checkpoint("created", 15)
    before = {pod.uid for pod in world.pods()}
    await delete_all(world.client, PODS, world.namespace)
    await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)}, "the old pods deleted")
    await world.checkpoint("all replaced", 15)


async def terminating_pod_with_finalizer(world: World) -> None:
    """A pod that a finalizer keeps terminating is replaced at its index before it is gone."""
    await world.create(SETS, workload("w", clique("a", 2)))
    await world.checkpoint("created", 2)
    held = pod_at(world, "w-0-a", 0)
    await world.patch(PODS, held.name, {"metadata": {"finalizers": ["example.com/hold"]}})
    await world.delete(PODS, held.name)
    await world.until(
        lambda: len(world.pods()) == 2 and world.get(CLIQUES, "w-0-a").status["readyReplicas"] == 2
    )
    assert pod_at(world, "w-0-a", 0).uid != held.uid
    await world.patch(PODS, held.name, [{"op": "remove", "path": "/metadata/finalizers"}], kind=JSON)
    await world.checkpoint("finalizer removed", 2)


SCENARIOS = {
    "deleted pods": deleted_pods,
    "evicted pod": evicted_pod,
    "edited objects": edited_objects,
    "relabelled pod": relabelled_pod,
    "deleted objects": deleted_objects,
    "all pods deleted at once": all_pods_deleted_at_once,
    "terminating pod with finalizer": terminating_pod_with_finalizer,
}
