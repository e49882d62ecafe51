"""The admission webhooks of an operator in this process, called by the real API server over loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

from prometheus_client import REGISTRY

from grove.api.configuration import loading
from grove.api.types.clustertopology import ClusterTopology
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from grove.kube.client.transport import HttpTransport
from grove.kube.errors import ApiError, KubeError, NotFound
from grove.operator.caches.resources import resource_of
from grove.operator.manager import Manager
from grove.operator.servers import serving
from grove.operator.webhooks import AdmissionWebhooks
from grove.webhooks.conversion.registration import unregister
from grove.webhooks.registrations import Path, UrlAddress, configurations
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload

T = TypeVar("T")
Body = dict[str, Any]

PATIENCE = 120.0
LOOPBACK = {"port": 0, "bindAddress": "127.0.0.1"}
ACCOUNT = "grove-operator"
TOPOLOGIES = resource_of(ClusterTopology.KIND)
KINDS = {resource.kind: resource for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class Replica:
    """The webhooks of one operator process."""

    def __init__(self, admission: AdmissionWebhooks, manager: Manager) -> None:
        self.admission, self.manager = admission, manager

    @property
    def url(self) -> str:
        assert self.admission.address is not None
        host, port = self.admission.address
        return f"https://{host}:{port}"

    async def until_ready(self) -> None:
        """Polls readiness as a kubelet does."""

        async def ready() -> bool:
            return not (self.manager.caches.unsynced or await self.admission.not_ready_reasons())

        await eventually(ready)


async def eventually(condition: Callable[[], Awaitable[T]]) -> T:
    """Polls until the condition is true, for states without a watch event: readiness of webhooks, and
    configurations that the API server has loaded."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if result := await condition():
                return result
            await asyncio.sleep(0.05)


@asynccontextmanager
async def replica(config: Config, home: str, **keys: Any) -> AsyncIterator[Replica]:
    """The webhooks as `grove operator` runs them, without its controllers. With `fabrics` they watch the
    domains and channels of these vendors."""
    webhooks, fabrics = {**LOOPBACK, **keys.pop("webhooks", {})}, keys.pop("fabrics", None)
    configuration = loading.load({"server": {"webhooks": webhooks}, **keys})
    transport = HttpTransport(config)
    automatic = fabrics is not None and configuration.network.auto_mnnvl_enabled
    manager = Manager(transport, fabrics=fabrics, auto_fabric=automatic)
    admission = AdmissionWebhooks(configuration, manager.caches, Client(transport), home, ACCOUNT)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        await stack.enter_async_context(serving([admission.endpoint]))
        tasks = [asyncio.create_task(manager.watch()), asyncio.create_task(admission.run())]
        stack.push_async_callback(_cancel, tasks)
        yield Replica(admission, manager)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def registered(url: str, namespace: str, **options: Any) -> list[Body]:
    """The webhook configurations, limited to one namespace so that tests do not affect each other."""
    bodies = configurations(UrlAddress(url), **options)
    for configuration in bodies:
        for webhook in configuration["webhooks"]:
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return bodies


@asynccontextmanager
async def registering(client: Client, bodies: Sequence[Body]) -> AsyncIterator[None]:
    """Creates these webhook configurations and deletes them when the block ends."""
    try:
        for body in bodies:
            await client.create(KINDS[body["kind"]], body, as_type=Object)
        yield
    finally:
        for body in bodies:
            with suppress(NotFound):
                await client.delete(KINDS[body["kind"]], body["metadata"]["name"], as_type=Object)
        await unregister(client)
        await eventually(lambda: _unregistered(client))


async def _unregistered(client: Client) -> bool:
    """Whether the API server has stopped calling the webhooks: it accepts an invalid topology. Topologies are
    cluster-scoped, so other tests could not create any before that."""
    body = topology("probe", "rack")
    body["spec"]["schedulerReferences"] = [{"schedulerName": "unknown", "reference": "any"}]
    return not await refusal(client, TOPOLOGIES, body)


@asynccontextmanager
async def admitting(
    client: Client, config: Config, namespace: str, *, operator: str = "", **keys: Any
) -> AsyncIterator[Replica]:
    """Webhooks for this namespace and for topologies: registered, ready and called by the API server."""
    async with replica(config, namespace, **keys) as webhooks:
        authorizer = keys.get("authorizer", {})
        bodies = registered(
            webhooks.url,
            namespace,
            operator=operator,
            authorizer=authorizer.get("enabled", False),
            exempt=authorizer.get("exemptServiceAccountUserNames", ()),
            dynamo=keys.get("dynamo", {}).get("enabled", False),
        )
        async with registering(client, bodies):
            await webhooks.until_ready()
            await until_called(client, namespace)
            yield webhooks


def good(name: str = "good") -> Body:
    """The smallest valid set."""
    return workload(name, clique("worker"))


def topology(name: str, *domains: str) -> Body:
    kind = ClusterTopology.KIND
    levels = [{"domain": domain, "key": f"example.com/{domain}"} for domain in domains]
    meta = {"metadata": {"name": name}}
    return {"apiVersion": kind.api_version, "kind": kind.name, **meta, "spec": {"levels": levels}}


def calls(path: str) -> float:
    """How many admission reviews this process has answered at the path."""
    samples = (REGISTRY.get_sample_value("grove_admission_seconds_count", {"path": path, "code": "200"}),)
    return sum(sample or 0.0 for sample in samples)


async def until_called(client: Client, namespace: str) -> None:
    """Sends requests until the API server calls the webhooks: it does not report when it has loaded a webhook
    configuration."""
    before = {path: calls(path) for path in (Path.DEFAULT_SET, Path.VALIDATE_SET, Path.VALIDATE_TOPOLOGY)}
    async with asyncio.timeout(PATIENCE):
        while any(calls(path) == count for path, count in before.items()):
            with suppress(KubeError):
                await client.create(SETS, good(), namespace=namespace, as_type=Object, dry_run=True)
                await client.create(TOPOLOGIES, topology("probe", "rack"), as_type=Object, dry_run=True)


async def refusal(client: Client, *args: Any, **options: Any) -> str:
    """The message of the API server for a refused create; empty if it accepts it. A dry run, nothing is
    stored."""
    try:
        await client.create(*args, as_type=Object, dry_run=True, **options)
    except ApiError as error:
        return error.status.message
    return ""
