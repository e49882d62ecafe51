"""Creates causes on the control plane: nodes, objects and sets, each cause in a namespace of its own; and
watches gangs and sets of all namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from grove.api.naming import labels
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, NODES, PODS, VALIDATING_WEBHOOKS, Resource
from grove.kube.errors import AlreadyExists, NotFound
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS, AnyObject
from tests.cluster.reasons.causes import CAUSE, GPU, NAME, RACK, Cause, CauseNode
from tests.namespaces import make_namespace

PATIENCE = 240.0  # seconds, for a busy machine
_WATCHED = (SETS, GANGS, GROUPS, CLIQUES, PODS)


class Seeded:
    """All causes, and the objects of their namespaces."""

    def __init__(self, client: Client, causes: Iterable[Cause], others: str = "others") -> None:
        self.client, self.causes = client, tuple(causes)
        self.others = others
        """The namespace of pods that use nodes of causes."""
        self._caches: dict[Resource, Cache[AnyObject]] = {each: Cache(each, AnyObject) for each in _WATCHED}
        self._changed = asyncio.Event()
        self._by_name = {each.name: each for each in self.causes}
        self._created: dict[str, float] = {}
        self.delays: dict[str, float] = {}
        """By cause, the seconds from the creation of its set to the condition with its code."""
        self.seen: dict[str, set[tuple[str, str]]] = {each.name: set() for each in self.causes}
        """By cause, the codes that its objects have had, with the names of the objects."""
        for cache in self._caches.values():
            cache.subscribe(lambda _old, new: self._on_change(new))

    def _on_change(self, new: AnyObject | None) -> None:
        self._changed.set()
        cause = self._by_name.get(new.metadata.namespace) if new is not None else None
        if new is None or cause is None:
            return
        if code := _waiting(new).get("reason"):
            self.seen[cause.name].add((new.name, code))
            if (new.name, code) == (NAME, cause.code) and cause.name in self._created:
                self.delays[cause.name] = asyncio.get_running_loop().time() - self._created.pop(cause.name)

    def condition(self, resource: Resource, cause: Cause, name: str) -> dict[str, Any]:
        """The condition `Waiting` of an object; empty if it has none."""
        found = self._caches[resource].get(cause.name, name)
        return _waiting(found) if found is not None else {}

    def code(self, resource: Resource, cause: Cause, name: str) -> str:
        return str(self.condition(resource, cause, name).get("reason", ""))

    def pods(self, cause: Cause) -> list[AnyObject]:
        return [pod for pod in self._caches[PODS] if pod.metadata.namespace == cause.name]

    async def until(self, holds: Callable[[], object], seconds: float = PATIENCE) -> bool:
        """Wait for watch events until something holds; returns whether it did in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        return bool(holds())

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(Reflector(self.client, each).run()) for each in self._caches.values()]
        try:
            for cache in self._caches.values():
                await cache.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def create(self) -> None:
        """Everything that exists before the operator acts, and the sets."""
        await make_namespace(self.client, self.others)
        await asyncio.gather(*map(self._create, self.causes))

    async def _create(self, cause: Cause) -> None:
        with suppress(AlreadyExists):
            await make_namespace(self.client, cause.name)
        if cause.namespace_labels:
            body = {"metadata": {"labels": dict(cause.namespace_labels)}}
            await self.client.patch(NAMESPACES, cause.name, body, as_type=Object)
        for number, node in enumerate(cause.nodes):
            await self._create_node(cause, number, node)
        for resource, body in cause.objects:
            await self.client.create(resource, body, namespace=cause.name, as_type=Object)
            if status := body.get("status"):
                name = body["metadata"]["name"]
                patch = {"status": status}
                await self.client.patch(
                    resource, name, patch, namespace=cause.name, subresource="status", as_type=Object
                )
        for each in cause.body["spec"]["template"]["cliques"]:
            spec = each["spec"]["podSpec"]
            spec["nodeSelector"] = {CAUSE: cause.name, **spec.get("nodeSelector", {})}
        self._created[cause.name] = asyncio.get_running_loop().time()
        await self.client.create(SETS, cause.body, namespace=cause.name, as_type=Object)
        if cause.pod_statuses:
            await self._report(cause)
        if cause.course is not None:
            await cause.course(self, cause)

    async def _create_node(self, cause: Cause, number: int, node: CauseNode) -> None:
        name = f"{cause.name}-{number}"
        capacity = {"cpu": "8", "memory": "64Gi", "pods": str(node.pods), GPU: str(node.gpus)}
        own = {CAUSE: cause.name, "kubernetes.io/hostname": name} | ({RACK: node.rack} if node.rack else {})
        lost = {"node.grove.local/lost": "true"} if node.lost else {}
        body = {
            "metadata": {"name": name, "labels": own, "annotations": {**lost, **node.annotations}},
            "spec": node.spec,
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        await self.client.create(NODES, body, as_type=Object)
        if node.used:
            resources = {"limits": {GPU: str(node.used)}}
            container = {"name": "main", "image": "other:1", "resources": resources}
            pod = {"metadata": {"name": name}, "spec": {"nodeName": name, "containers": [container]}}
            await self.client.create(PODS, pod, namespace=self.others, as_type=Object)

    async def _report(self, cause: Cause) -> None:
        """Report the statuses of pods, as their kubelet does."""
        wanted = len(cause.body["spec"]["template"]["cliques"])

        def bound() -> list[AnyObject]:
            return [pod for pod in self.pods(cause) if pod.spec.get("nodeName")]

        assert await self.until(lambda: len(bound()) == wanted), f"{cause.name}: pods without nodes"
        for pod in bound():
            status = cause.pod_statuses.get(pod.labels[labels.CLIQUE].removeprefix(f"{NAME}-0-"))
            if status is not None:
                await self.patch(PODS, cause, pod.name, {"status": status}, "status")

    async def patch(self, resource: Resource, cause: Cause, name: str, body: Any, status: str = "") -> None:
        """Change an object of a cause; `status`: the subresource."""
        await self.client.patch(
            resource, name, body, namespace=cause.name, subresource=status, as_type=Object
        )

    async def until_pods(self, cause: Cause, holds: Callable[[AnyObject], object]) -> list[AnyObject]:
        """The pods of a cause, as many as there should be, once something holds for each of them."""
        cliques = cause.body["spec"]["template"]["cliques"]
        wanted = sum(each["spec"]["replicas"] for each in cliques)

        def found() -> list[AnyObject]:
            return [pod for pod in self.pods(cause) if pod.labels.get(labels.PART_OF) == NAME and holds(pod)]

        assert await self.until(lambda: len(found()) == wanted), f"{cause.name}: {self.pods(cause)}"
        return found()

    async def delete(self) -> None:
        """Delete nodes and namespaces; the operator, if it runs, deletes what is in them."""
        for cause in self.causes:
            await self._delete(SETS, NAME, cause.name)
            for number in range(len(cause.nodes)):
                await self._delete(NODES, f"{cause.name}-{number}")
        for name in (self.others, *(cause.name for cause in self.causes)):
            await self._delete(NAMESPACES, name)

    async def _delete(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        with suppress(NotFound):
            await self.client.delete(resource, name, namespace=namespace, as_type=Object)


def _waiting(found: AnyObject) -> dict[str, Any]:
    conditions = found.status.get("conditions") or ()
    return next((each for each in conditions if each["type"] == "Waiting"), {})


@asynccontextmanager
async def webhook_that_is_down(client: Client) -> AsyncIterator[None]:
    """A webhook that does not answer, for the pods of namespaces with the label `webhook: down`."""
    body = {
        "metadata": {"name": "down-for-causes"},
        "webhooks": [
            {
                "name": "down.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"webhook": "down"}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 1,
            }
        ],
    }
    await client.create(VALIDATING_WEBHOOKS, body, as_type=Object)
    try:
        yield
    finally:
        await client.delete(VALIDATING_WEBHOOKS, "down-for-causes", as_type=Object)
