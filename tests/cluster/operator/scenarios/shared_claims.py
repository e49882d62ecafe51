"""Shared ResourceClaims: created for sets, groups and cliques, allocated by the scheduler, and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import yaml

from grove.api.naming import annotations, labels
from grove.kube.client.client import MERGE
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from grove.kube.errors import AlreadyExists, Conflict, NotFound
from tests.cluster.operator.scenarios.api_errors import QUOTAS, says
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS, AnyObject
from tests.cluster.operator.support.workloads import Body, clique, workload
from tests.shared import shared_data

DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
DRIVER = "shared.example.com"
ONE_DEVICE = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": DRIVER}}]}}


@asynccontextmanager
async def devices(world: World) -> AsyncIterator[None]:
    """A hundred devices that are accessible from every node, until the block is left."""
    chosen = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    slice_ = {
        "driver": DRIVER,
        "pool": {"name": "network", "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        "devices": [{"name": f"device-{number}"} for number in range(100)],
    }
    kinds = ((DEVICE_CLASSES, {"selectors": chosen}), (RESOURCE_SLICES, slice_))
    for kind, spec in kinds:
        with suppress(AlreadyExists):
            await world.client.create(kind, {"metadata": {"name": DRIVER}, "spec": spec}, as_type=Object)
    yield
    for kind, _ in kinds:
        with suppress(NotFound):
            await world.client.delete(kind, DRIVER, as_type=Object)


@asynccontextmanager
async def other_namespace(world: World) -> AsyncIterator[str]:
    """Another namespace, deleted when the block is left."""
    name = f"{world.namespace}-elsewhere"
    with suppress(AlreadyExists):
        await world.client.create(NAMESPACES, {"metadata": {"name": name}}, as_type=Object)
    yield name
    with suppress(NotFound, Conflict):
        await world.client.delete(NAMESPACES, name, as_type=Object)


async def template(world: World, namespace: str, name: str, spec: Body | None = None) -> None:
    body = {"metadata": {"name": name}, "spec": {"spec": spec or ONE_DEVICE}}
    await world.client.create(RESOURCE_CLAIM_TEMPLATES, body, namespace=namespace, as_type=Object)


async def consent(world: World, namespace: str, name: str, to: str | None) -> None:
    """Set or remove (None) the annotation that lets other namespaces use a template."""
    body = {"metadata": {"annotations": {annotations.SHARED_WITH_NAMESPACES: to}}}
    await world.client.patch(
        RESOURCE_CLAIM_TEMPLATES, name, body, namespace=namespace, as_type=Object, kind=MERGE
    )


def upstream_workload(other: str) -> Body:
    """Upstream's workload, with the devices of this module. `minAvailable` of its group is 1, since the test
    scales the group to 1 and fewer replicas than `minAvailable` are refused."""
    text = shared_data("workloads/workload-resource-sharing.yaml").read_text()
    body: Body = [part for part in yaml.load_all(text, Loader=yaml.CSafeLoader) if part][-1]
    parts = body["spec"]["template"]
    for own in parts["resourceClaimTemplates"]:
        own["templateSpec"]["spec"] = ONE_DEVICE
    for one in parts["cliques"]:
        one["spec"]["podSpec"]["schedulerName"] = "default-scheduler"
    parts["cliques"][0]["resourceSharing"][1]["namespace"] = other
    parts["podCliqueScalingGroups"][0]["minAvailable"] = 1
    return body


def expected(groups: int = 2, pods: int = 1, replica: int = 0) -> set[str]:
    """The names of the claims of one replica and of the set."""
    base = f"rs-test-{replica}"
    return {
        "rs-test-all-int-tpl5",
        "rs-test-all-int-tpl7",
        f"{base}-ext-tpl",
        f"{base}-int-tpl",
        f"{base}-worker-a-all-ext-ns-tpl",
        f"{base}-sga-all-int-tpl2",
        f"{base}-sga-all-int-tpl8",
        *(f"{base}-worker-a-{index}-int-tpl4" for index in range(pods)),
        *(f"{base}-sga-{index}-int-tpl3" for index in range(groups)),
        *(f"{base}-sga-{index}-worker-b-all-int-tpl6" for index in range(groups)),
    }


def claims(world: World) -> set[str]:
    return set(world.names(RESOURCE_CLAIMS))


def used(pod: AnyObject) -> set[str]:
    """The claims that a pod refers to; asserts that each of its containers uses all of them."""
    found = {claim["resourceClaimName"] for claim in pod.spec.get("resourceClaims", ())}
    for container in pod.spec["containers"]:
        assert {claim["name"] for claim in container["resources"].get("claims", ())} == found
    return found


def owner(claim: AnyObject) -> str:
    (reference,) = claim.metadata.owner_references
    return f"{reference.kind} {reference.name}"


def check_references(world: World) -> None:
    """Pods refer to exactly the claims that the filters of `resourceSharing` select for them."""
    for pod in world.pods():
        name, index = pod.labels[labels.CLIQUE], pod.labels[labels.POD_INDEX]
        base = f"rs-test-{pod.labels[labels.SET_REPLICA]}"
        common = {"rs-test-all-int-tpl5", f"{base}-ext-tpl"}
        if name == f"{base}-worker-a":
            own = {f"{base}-int-tpl", f"{name}-all-ext-ns-tpl", f"{name}-{index}-int-tpl4"}
        else:
            group = pod.labels[labels.GROUP]
            replica = pod.labels[labels.GROUP_REPLICA]
            own = {"rs-test-all-int-tpl7", f"{group}-all-int-tpl2", f"{group}-all-int-tpl8"}
            own |= {f"{group}-{replica}-int-tpl3", f"{name}-all-int-tpl6"}
        assert used(pod) == common | own, pod.name


def check_owners(world: World) -> None:
    for claim in world.all(RESOURCE_CLAIMS):
        assert claim.labels[labels.COMPONENT] == "resource-claim"
        if name := claim.labels.get(labels.CLIQUE):
            assert owner(claim) == f"PodClique {name}"
        elif name := claim.labels.get(labels.GROUP):
            assert owner(claim) == f"PodCliqueScalingGroup {name}"
        else:
            assert owner(claim) == "PodCliqueSet rs-test"


async def claims_on_three_levels(world: World) -> None:
    async with devices(world), other_namespace(world) as other:
        await template(world, world.namespace, "ext-tpl")
        await world.create(SETS, upstream_workload(other))
        missing = f"ResourceClaimTemplate {other}/ext-ns-tpl, which"
        await world.checkpoint(
            "error reported",
            when=lambda: says(world, CLIQUES, "rs-test-0-worker-a", missing),
            compared=False,
        )
        assert not world.pods(clique="rs-test-0-worker-a")
        await template(world, other, "ext-ns-tpl")
        await consent(world, other, "ext-ns-tpl", world.namespace)
        await settled(world, "created", 3, expected())
        assert all(claim.status.get("allocation") for claim in world.all(RESOURCE_CLAIMS)), "allocated"
        await world.stop_comparing_deletes()
        await world.scale(GROUPS, "rs-test-0-sga", 1)
        await settled(world, "group scaled in", 2, expected(1))
        await world.scale(GROUPS, "rs-test-0-sga", 3)
        await settled(world, "group scaled out", 4, expected(3))
        await world.scale(SETS, "rs-test", 2)
        await settled(world, "set scaled out", 7, expected(3) | expected(2, replica=1))
        await world.scale(SETS, "rs-test", 1)
        await settled(world, "set scaled in", 4, expected(3))
        await world.scale(CLIQUES, "rs-test-0-worker-a", 2)
        await settled(world, "clique scaled out", 5, expected(3, pods=2))
        await world.scale(CLIQUES, "rs-test-0-worker-a", 1)
        await world.checkpoint(
            "clique scaled in", 4, compared=False
        )  # which pod stays differs from run to run
        check_references(world)
        await world.delete(SETS, "rs-test")
        await world.checkpoint(
            "deleted", when=lambda: not world.all(SETS) and not claims(world) and not world.all(PODS)
        )


async def settled(world: World, name: str, pods: int, wanted: set[str]) -> None:
    await world.checkpoint(name, pods)
    assert claims(world) == wanted
    check_references(world)
    check_owners(world)


def shared_by_pods() -> Body:
    body = workload("few", clique("worker", 2, resourceSharing=[{"name": "one", "scope": "AllReplicas"}]))
    own = {"name": "one", "templateSpec": {"spec": ONE_DEVICE}}
    body["spec"]["template"]["resourceClaimTemplates"] = [own]
    return body


async def claims_refused_and_deleted(world: World) -> None:
    """A quota for claims delays the whole gang. A deleted claim that pods use terminates until they are gone:
    new pods that need a claim of that name wait."""
    await world.watch(QUOTAS)
    none: dict[str, Any] = {"hard": {"count/resourceclaims.resource.k8s.io": "0"}}
    async with devices(world):
        await world.create(QUOTAS, {"metadata": {"name": "none"}, "spec": none})
        await world.until(lambda: world.get(QUOTAS, "none").status.get("hard"))
        await world.create(SETS, shared_by_pods())
        await world.checkpoint(
            "error reported", when=lambda: says(world, CLIQUES, "few-0-worker", "quota"), compared=False
        )
        (error,) = world.get(CLIQUES, "few-0-worker").status["lastErrors"]
        assert error["code"] == "ERR_SYNC_PCLQ_RESOURCE_CLAIM"
        assert not world.pods()
        await world.delete(QUOTAS, "none")
        await world.checkpoint("created", 2)
        before = world.get(RESOURCE_CLAIMS, "few-0-worker-all-one").uid
        await world.delete(RESOURCE_CLAIMS, "few-0-worker-all-one")
        await world.until(lambda: world.get(RESOURCE_CLAIMS, "few-0-worker-all-one").terminating)
        for pod in world.pods():
            await world.delete(PODS, pod.name)
        await world.checkpoint("recreated", when=claim_recreated(world, before))


def claim_recreated(world: World, before: str) -> Callable[[], bool]:
    def holds() -> bool:
        found = world.find(RESOURCE_CLAIMS, "few-0-worker-all-one")
        return found is not None and found.uid != before and len(world.all(PODS)) == 2 and world.all_ready()

    return holds


SCENARIOS = {
    "claims on three levels": claims_on_three_levels,
    "claims refused and deleted": claims_refused_and_deleted,
}
