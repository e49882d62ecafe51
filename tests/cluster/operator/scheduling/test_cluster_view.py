"""The view of the cluster for placement: pods that the real scheduler binds, nominations, resizes, and an
account that may not read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from grove.api.configuration.types import Scheduler
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.kube.auth import config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.auth.secret_source import InlineSource
from grove.kube.cache.cache import Cache, version_of
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import Caches
from grove.operator.manager import Manager
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.process import run_until_first_ends
from grove.schedulers.registry import backends
from grove.topology.placement.needs.devices import resource_of
from tests.cluster.webhooks.harness import eventually
from tests.service_accounts import request_token

HOST = "kubernetes.io/hostname"
CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
DRIVER = "devices.example.com"
PRIORITY = 4711
"""Of the pods of this module only, so that the pods of other tests on the same node do not count."""


class WatchedView:
    """A view with running watches."""

    def __init__(self) -> None:
        self.nodes, self.pods, self.devices = Nodes(placement=True), ClusterPods(), Devices()
        self.nodes.require({HOST})
        self.view = ClusterView(self.nodes, self.pods, self.devices)
        self._changed = asyncio.Event()
        self.view.subscribe(self._changed.set)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for the change after which the condition holds."""
        async with asyncio.timeout(60):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_version(self, namespace: str, name: str, version: int) -> None:
        """Wait until the watch has shown this version of a pod."""

        async def shown() -> bool:
            return (pod := self.view.pod(namespace, name)) is not None and pod.version >= version

        await eventually(shown)

    def use(self, node: str) -> object:
        """What the pods of this module use of a node."""
        return self.view.use_by_priority(node).get(PRIORITY)


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[WatchedView]:
    watched = WatchedView()
    watches = run_until_first_ends(
        watched.nodes.run(client), watched.pods.run(client), watched.devices.run(client, CrdWatch())
    )
    task = asyncio.create_task(watches)
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def priority_class(client: Client) -> AsyncIterator[str]:
    name = "cluster-view"
    await client.create(CLASSES, {"metadata": {"name": name}, "value": PRIORITY}, as_type=Object)
    try:
        yield name
    finally:
        await client.delete(CLASSES, name, as_type=Object)


def a_pod(name: str, node: str, **more: Any) -> dict[str, Any]:
    """A pod that may go to one node only."""
    return {
        "metadata": {"name": name, "labels": more.pop("labels", {})},
        "spec": {
            "nodeSelector": {HOST: node},
            "priorityClassName": "cluster-view",
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [requesting("1")],
            **more,
        },
    }


def requesting(cpu: str) -> dict[str, Any]:
    """The only container of a pod."""
    return {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}


def allocated(cpu: str) -> dict[str, Any]:
    """What the kubelet reports about that container."""
    resources = {"cpu": cpu, "memory": "1Mi"}
    reported = {"allocatedResources": resources, "resources": {"requests": resources}}
    identity = {"name": "main", "image": "i", "imageID": "i", "ready": True, "restartCount": 0}
    return {"status": {"containerStatuses": [{**identity, **reported}]}}


async def until_running(client: Client, namespace: str, name: str) -> None:
    """Wait until KWOK has written the status of a pod, which would replace that of the test."""
    pods = Cache(PODS, Pod, namespace=namespace, fields=f"metadata.name={name}")
    running = asyncio.Event()
    pods.subscribe(lambda _, new: new and new.status.phase == "Running" and running.set())
    task = asyncio.create_task(Reflector(client, pods).run())
    try:
        await asyncio.wait_for(running.wait(), 60)
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_use_follows_pods_that_the_scheduler_binds(client: Client, namespace: str) -> None:
    async def create(body: dict[str, Any]) -> None:
        await client.create(PODS, body, namespace=namespace, as_type=Object)

    async def patch(name: str, body: dict[str, Any], subresource: str = "status") -> int:
        where = {"namespace": namespace, "subresource": subresource}
        return version_of(await client.patch(PODS, name, body, as_type=Object, **where))

    async with priority_class(client), watching(client) as watched:
        view = watched.view
        await watched.until(lambda: view.synced)
        node, other = sorted(found.metadata.name for found in watched.nodes)[:2]
        found = view.node(node)
        assert found is not None
        assert (found.ready, found.labels) == (True, {HOST: node})
        assert found.allocatable["cpu"] % 1000 == 0
        assert found.allocatable["pods"] > 0

        await create(a_pod("bound", node))
        one = {"cpu": 1000, "memory": 2**20, "pods": 1}
        await watched.until(lambda: watched.use(node) == one)
        assert node in view.take_changed_nodes()

        gates = [{"name": "example.com/wait"}]
        ours = {labels.MANAGED_BY: labels.OPERATOR, labels.GANG: "gang"}
        for name, marks in (("theirs", {}), ("ours", ours)):
            await create(a_pod(name, other, schedulingGates=gates, labels=marks))
            await patch(name, {"status": {"nominatedNodeName": other}})
        await watched.until(lambda: (pod := view.pod(namespace, "ours")) and pod.nominated_node == other)
        assert watched.use(other) == one, "only the nomination of others counts"

        waits = a_pod("waits", other)
        waits["spec"]["containers"] = [requesting("1000")]
        await create(waits)
        await watched.until(lambda: (pod := view.pod(namespace, "waits")) and pod.profile.unschedulable)
        unbound = {pod.name: pod for pod in view.unbound_foreign({"default-scheduler"})}
        assert view.could_go(unbound["waits"], other)
        assert not view.could_go(unbound["waits"], node)

        await until_running(client, namespace, "bound")
        await patch("bound", allocated("1"))  # by which the API server knows that the node can resize
        await patch("bound", {"spec": {"containers": [requesting("3")]}}, "resize")
        await watched.until(lambda: watched.use(node) == one | {"cpu": 3000})
        await patch("bound", allocated("3"))
        version = await patch("bound", {"spec": {"containers": [requesting("2")]}}, "resize")
        await watched.until_version(namespace, "bound", version)
        assert watched.use(node) == one | {"cpu": 3000}, "as long as more is allocated"
        await patch("bound", allocated("2"))
        await watched.until(lambda: watched.use(node) == one | {"cpu": 2000})
        await patch("bound", {"status": {"phase": "Succeeded"}})
        await watched.until(lambda: watched.use(node) is None)
        assert view.pod(namespace, "bound") is None


async def test_devices_that_the_scheduler_allocates_are_used(client: Client, namespace: str) -> None:
    async with priority_class(client), watching(client) as watched:
        view = watched.view
        await watched.until(lambda: view.synced)
        node = min(found.metadata.name for found in watched.nodes)
        view.require_devices()
        async with devices_of(client, node):
            resource = resource_of(DRIVER)
            await watched.until(lambda: view.synced and view.node(node).allocatable.get(resource) == 2)
            request = {"name": "device", "exactly": {"deviceClassName": DRIVER}}
            claim = {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [request]}}}
            await client.create(RESOURCE_CLAIMS, claim, namespace=namespace, as_type=Object)
            claims = [{"name": "device", "resourceClaimName": "claim"}]
            body = a_pod("claims", node, resourceClaims=claims)
            await client.create(PODS, body, namespace=namespace, as_type=Object)
            one = {"cpu": 1000, "memory": 2**20, "pods": 1}
            await watched.until(lambda: watched.use(node) == one | {resource: 1})
            await client.delete(PODS, "claims", namespace=namespace, as_type=Object)
            await watched.until(lambda: watched.use(node) is None)


@asynccontextmanager
async def devices_of(client: Client, node: str) -> AsyncIterator[None]:
    """Two devices of a node, available by claim only."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    kind = {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}
    await client.create(DEVICE_CLASSES, kind, as_type=Object)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "one"}, {"name": "two"}]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    await client.create(RESOURCE_SLICES, {"metadata": {"name": DRIVER}, "spec": spec}, as_type=Object)
    try:
        yield
    finally:
        await client.delete(RESOURCE_SLICES, DRIVER, as_type=Object)
        await client.delete(DEVICE_CLASSES, DRIVER, as_type=Object)


async def test_manager_watches_the_cluster_for_placement_only(client: Client, crds: object) -> None:
    assert Caches().cluster_pods is None
    assert Caches().devices is None
    manager = Manager(client.transport, backends=backends(Scheduler()))
    pods, devices = manager.caches.cluster_pods, manager.caches.devices
    assert pods is not None
    assert devices is not None
    view = ClusterView(manager.caches.nodes, pods, devices)
    view.require_devices()
    synced = asyncio.Event()
    view.subscribe(lambda: view.synced and synced.set())
    task = asyncio.create_task(manager.watch())
    try:
        await asyncio.wait_for(synced.wait(), 60)
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_view_without_rbac_says_why_until_it_is_granted(
    client: Client, cluster: LocalCluster, namespace: str
) -> None:
    token = InlineSource((await request_token(client, namespace, "default")).encode())
    restricted = msgspec.structs.replace(
        config.load(cluster.kubeconfig), credentials=StaticCredentials(token=token)
    )
    async with Client(restricted) as account, watching(account) as watched:
        view = watched.view
        await problem_is(view, "nodes", "pods")
        assert "forbidden" in view.problem
        assert not view.synced
        async with granted(client, namespace, NODES):
            await problem_is(view, "pods")
            assert not view.synced
            async with granted(client, namespace, PODS):
                await watched.until(lambda: view.synced)
                assert view.problem == ""


async def problem_is(view: ClusterView, *kinds: str) -> None:
    """Wait until the view reports that these kinds cannot be watched, and no others."""

    async def reported() -> bool:
        return tuple(each.partition(":")[0] for each in view.problem.split("; ")) == kinds

    await eventually(reported)


@asynccontextmanager
async def granted(client: Client, namespace: str, resource: Resource) -> AsyncIterator[None]:
    """Let the default account of the namespace list and watch a resource of the whole cluster."""
    name = f"{namespace}-{resource.plural}"
    rule = {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": ["list", "watch"]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": name}
    metadata = {"name": name}
    await client.create(CLUSTER_ROLES, {"metadata": metadata, "rules": [rule]}, as_type=Object)
    binding = {"metadata": metadata, "roleRef": role, "subjects": [subject]}
    await client.create(CLUSTER_ROLE_BINDINGS, binding, as_type=Object)
    try:
        yield
    finally:
        for kind in (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES):
            await client.delete(kind, name, as_type=Object)
