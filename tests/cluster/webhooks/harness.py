"""The webhooks of an operator in this process, called by the real API server on loopback."""

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
from grove.operator.caches.registry import resource_of
from grove.operator.manager import Manager
from grove.operator.servers import serving
from grove.operator.webhooks import AdmissionWebhooks
from grove.webhooks.registrations import Path, UrlAddress, configurations
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload

T = TypeVar("T")
Body = dict[str, Any]

PATIENCE = 120.0
HERE = {"port": 0, "bindAddress": "127.0.0.1"}
ACCOUNT = "grove-operator"
TOPOLOGIES = resource_of(ClusterTopology.KIND)
KINDS = {resource.kind: resource for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class Replica:
    """One process's webhooks."""

    def __init__(self, admission: AdmissionWebhooks, manager: Manager) -> None:
        self.admission, self.manager = admission, manager

    @property
    def url(self) -> str:
        assert self.admission.address is not None
        host, port = self.admission.address
        return f"https://{host}:{port}"

    async def until_ready(self) -> None:
        """Ready as a kubelet would see it, which is told by asking."""

        async def ready() -> bool:
            return not (self.manager.caches.unsynced or await self.admission.not_ready_reasons())

        await eventually(ready)


async def eventually(question: Callable[[], Awaitable[T]]) -> T:
    """For what no event tells: readiness, and what API servers have taken in."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if answer := await question():
                return answer
            await asyncio.sleep(0.05)


@asynccontextmanager
async def replica(config: Config, home: str, **keys: Any) -> AsyncIterator[Replica]:
    """The webhooks as `grove operator` runs them, without the rest of it. They look at the domains and the
    channels of `fabrics`, if there are any."""
    webhooks, fabrics = {**HERE, **keys.pop("webhooks", {})}, keys.pop("fabrics", None)
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
    """The configurations, for one namespace only: tests leave the others alone."""
    wanted = configurations(UrlAddress(url), **options)
    for configuration in wanted:
        for webhook in configuration["webhooks"]:
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return wanted


@asynccontextmanager
async def registering(client: Client, wanted: Sequence[Body]) -> AsyncIterator[None]:
    """These configurations, while the block runs."""
    try:
        for body in wanted:
            await client.create(KINDS[body["kind"]], body, as_type=Object)
        yield
    finally:
        for body in wanted:
            with suppress(NotFound):
                await client.delete(KINDS[body["kind"]], body["metadata"]["name"], as_type=Object)
        await eventually(lambda: _forgotten(client))


async def _forgotten(client: Client) -> bool:
    """Whether nobody is asked any more, which is told by asking too. Topologies are in no namespace: until
    then nobody else could make one."""
    body = topology("probe", "rack")
    body["spec"]["schedulerReferences"] = [{"schedulerName": "nobody", "reference": "nothing"}]
    return not await refusal(client, TOPOLOGIES, body)


@asynccontextmanager
async def admitting(
    client: Client, config: Config, namespace: str, *, operator: str = "", **keys: Any
) -> AsyncIterator[Replica]:
    """Webhooks that answer for this namespace and for topologies, registered and called."""
    async with replica(config, namespace, **keys) as found:
        authorizer = keys.get("authorizer", {})
        wanted = registered(
            found.url,
            namespace,
            operator=operator,
            authorizer=authorizer.get("enabled", False),
            exempt=authorizer.get("exemptServiceAccountUserNames", ()),
            dynamo=keys.get("dynamo", {}).get("enabled", False),
        )
        async with registering(client, wanted):
            await found.until_ready()
            await until_called(client, namespace)
            yield found


def good(name: str = "good") -> Body:
    """The smallest set that nothing is wrong with."""
    return workload(name, clique("worker"))


def topology(name: str, *domains: str) -> Body:
    kind = ClusterTopology.KIND
    levels = [{"domain": domain, "key": f"example.com/{domain}"} for domain in domains]
    meta = {"metadata": {"name": name}}
    return {"apiVersion": kind.api_version, "kind": kind.name, **meta, "spec": {"levels": levels}}


def calls(path: Path) -> float:
    """How many reviews have been answered there by this process."""
    samples = (REGISTRY.get_sample_value("grove_admission_seconds_count", {"path": path, "code": "200"}),)
    return sum(sample or 0.0 for sample in samples)


async def until_called(client: Client, namespace: str) -> None:
    """API servers tell nobody when they have taken in a webhook configuration: ask until one has."""
    before = {path: calls(path) for path in (Path.DEFAULT_SET, Path.VALIDATE_SET, Path.VALIDATE_TOPOLOGY)}
    async with asyncio.timeout(PATIENCE):
        while any(calls(path) == count for path, count in before.items()):
            with suppress(KubeError):
                await client.create(SETS, good(), namespace=namespace, as_type=Object, dry_run=True)
                await client.create(TOPOLOGIES, topology("probe", "rack"), as_type=Object, dry_run=True)


async def refusal(client: Client, *args: Any, **options: Any) -> str:
    """What the API server says to a create that it refuses; empty if it accepts it. Nothing is stored."""
    try:
        await client.create(*args, as_type=Object, dry_run=True, **options)
    except ApiError as error:
        return error.status.message
    return ""
