"""Both versions of DynamoGraphDeployments on the real API server, which calls our conversion webhook: clients
of both read, scale and apply manifests of both, an operator follows them, and deletion needs no operator."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.cli.commands.detach import detach_all
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.api import crd_definitions
from grove.fabrics.registry import Providers
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import APPLY, JSON, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.client.resource import NAMESPACES
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import GRAPHS
from grove.operator.crds import apply_crds
from grove.operator.dynamo_settings import DynamoSettings, dynamo_operator_conflict
from grove.webhooks.conversion.registration import CRD, is_ours, unregister
from grove.webhooks.registrations import CONVERT_GRAPH, account
from tests.chart import NAMESPACE, Account
from tests.cluster.operator.dynamo.conftest import NAME, dynamo_account  # noqa: F401 - a fixture
from tests.cluster.operator.dynamo.graph_status import ready
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.world import World, watching
from tests.cluster.webhooks.harness import KINDS, Replica, calls, eventually, registered, registering, replica
from tests.dynamo.builders import alpha, component, deployment, service
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

OLDER = replace(GRAPHS, version="v1alpha1")
SWITCHES = {"dynamo": {"enabled": True}}
SETTINGS = DynamoSettings.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
OLD_MANIFEST = alpha(
    {"envs": [{"name": "A", "value": "1"}]},
    Frontend=service("frontend"),
    decode=service(subComponentType="decode", labels={"team": "a"}, resources={"limits": {"cpu": "1"}}),
)
NEW_MANIFEST = deployment(component("decode", "decode"), component("Frontend", "frontend"))


def named(body: dict[str, Any], name: str) -> dict[str, Any]:
    return default_graph({**body, "metadata": {"name": name}}, creating=True)


class Planner14:
    """Reads and scales as the planner of Dynamo 1.4 does, in v1beta1."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, name: str) -> dict[str, tuple[str, int]]:
        """Type and replicas of each component."""
        body = await self.world.client.get(GRAPHS, name, namespace=self.world.namespace, as_type=dict)
        self.check(body)
        return {each["name"]: (each["type"], each["replicas"]) for each in body["spec"]["components"]}

    def check(self, body: dict[str, Any]) -> None:
        """Its status, as far as there is one."""
        for name, each in body.get("status", {}).get("components", {}).items():
            assert (name, each["componentNames"][0][-len(name) :].lower()) == (name, name.lower())

    async def scale(self, name: str, wanted: str, replicas: int) -> None:
        found = await self.world.client.get(GRAPHS, name, namespace=self.world.namespace, as_type=dict)
        names = [each["name"] for each in found["spec"]["components"]]
        path = f"/spec/components/{names.index(wanted)}"
        patch = [
            {"op": "test", "path": f"{path}/name", "value": wanted},
            {"op": "replace", "path": f"{path}/replicas", "value": replicas},
        ]
        await self.world.client.patch(
            GRAPHS, name, patch, namespace=self.world.namespace, kind=JSON, as_type=Object
        )


class Planner12(Planner14):
    """Reads and scales as the planner of Dynamo 1.2 does, in v1alpha1."""

    async def read(self, name: str) -> dict[str, tuple[str, int]]:
        body = await self.world.client.get(OLDER, name, namespace=self.world.namespace, as_type=dict)
        services = body["spec"]["services"]
        for key, each in body.get("status", {}).get("services", {}).items():
            assert each["componentName"].endswith(key.lower())
        return {
            key: (each.get("subComponentType") or each["componentType"], each["replicas"])
            for key, each in services.items()
        }

    async def scale(self, name: str, wanted: str, replicas: int) -> None:
        patch = {"spec": {"services": {wanted: {"replicas": replicas}}}}
        await self.world.client.patch(OLDER, name, patch, namespace=self.world.namespace, as_type=Object)


@pytest.fixture
async def graphs(
    client: Client,
    dynamo_account: Account,  # noqa: F811
    namespace: str,
):
    """A watched namespace, with the CRDs of Dynamo and without conversion."""
    async with watching(client, dynamo_account.config, namespace) as world:
        await world.watch(GRAPHS)
        yield world


async def conversion(client: Client) -> dict[str, Any]:
    found = await client.get(CRDS, CRD, as_type=dict)
    return found["spec"]["conversion"]


async def registered_again(client: Client) -> bool:
    return is_ours(await conversion(client))


async def until_converting(client: Client, namespace: str, webhooks: Replica) -> None:
    """Waits until the API server calls the webhook: it does not report when it has loaded the definition."""
    await webhooks.until_ready()
    before = calls(CONVERT_GRAPH)

    async def called() -> bool:
        try:
            await client.create(
                OLDER, named(OLD_MANIFEST, "probe"), namespace=namespace, as_type=Object, dry_run=True
            )
        except ApiError:
            return False
        return calls(CONVERT_GRAPH) > before

    await eventually(called)


async def test_clients_of_both_versions_read_and_scale(
    cluster: LocalCluster, graphs: World, namespace: str
) -> None:
    client, world = graphs.client, graphs
    # An object of an earlier release: v1alpha1 was stored as it was, in v1beta1.
    await client.create(OLDER, named(OLD_MANIFEST, "kept"), namespace=namespace, as_type=Object)
    stored = await client.get(GRAPHS, "kept", namespace=namespace, as_type=dict)
    assert "services" in stored["spec"]
    connection = config.load(cluster.kubeconfig)
    async with AsyncExitStack() as stack:
        webhooks = await stack.enter_async_context(replica(connection, namespace, **SWITCHES))
        bodies = registered(webhooks.url, namespace, dynamo=True)
        await stack.enter_async_context(registering(client, bodies))
        await until_converting(client, namespace, webhooks)
        assert is_ours(await conversion(client))
        assert await dynamo_operator_conflict(client) == ""
        # Definitions that are applied again do not remove it.
        registered_conversion = await conversion(client)
        assert [each.name async for each in apply_crds(client, crd_definitions.all_definitions())]
        assert await conversion(client) == registered_conversion
        # One that is removed comes back.
        assert await unregister(client)
        await eventually(lambda: registered_again(client))
        await until_converting(client, namespace, webhooks)
        async with operating(world, dynamo=SETTINGS):
            await client.create(OLDER, named(OLD_MANIFEST, "older"), namespace=namespace, as_type=Object)
            await client.create(GRAPHS, named(NEW_MANIFEST, "newer"), namespace=namespace, as_type=Object)
            names = ("older", "newer", "kept")
            await world.until(lambda: all(ready(world, name) for name in names), "all are ready")
            await world.until(lambda: "components" in world.get(GRAPHS, "kept").spec, "it is rewritten")
            before = {pod.uid for pod in world.pods()}
            for name in names:
                await read_and_scale(world, name)
            assert before <= {pod.uid for pod in world.pods()}, "no pod was replaced"
            await apply_by_server(world, "older")
            wrong = {**named(OLD_MANIFEST, "wrong"), "apiVersion": GRAPHS.api_version}
            with pytest.raises(ApiError, match=r"spec\.services.*no field of v1beta1"):
                await client.create(GRAPHS, wrong, namespace=namespace, as_type=Object)


async def read_and_scale(world: World, name: str) -> None:
    """Both planners read the same, and the operator follows both."""
    for planner, count in ((Planner14(world), 2), (Planner12(world), 3)):
        for reader in (Planner14(world), Planner12(world)):
            found = await reader.read(name)
            assert sorted(found) == ["Frontend", "decode"]
            assert (found["decode"][0], found["Frontend"]) == ("decode", ("frontend", 1))
        await planner.scale(name, "decode", count)
        await world.until(
            lambda count=count: len(world.pods(clique=f"{name}-0-decode")) == count and ready(world, name),
            f"{name} has {count} workers",
        )


async def apply_by_server(world: World, name: str) -> None:
    """A client of v1alpha1 applies its manifest, by server-side apply, over the object that is stored in
    v1beta1; then with another value of a field that only v1alpha1 has, and without one that it applied."""
    manifest = named(OLD_MANIFEST, name)
    first = {"dynamoNamespace": "a", "sharedMemory": {"size": "1Gi"}}
    for count, more in ((1, first), (2, {"dynamoNamespace": "b"})):
        services = {**manifest["spec"]["services"]}
        services["decode"] = {**services["decode"], "replicas": count, **more}
        body = {**manifest, "spec": {**manifest["spec"], "services": services}}
        options = {"kind": APPLY, "field_manager": "user", "force": True}
        found = await world.client.patch(
            OLDER, name, body, namespace=world.namespace, as_type=dict, **options
        )
        decode = found["spec"]["services"]["decode"]
        assert (decode["replicas"], decode["labels"]) == (count, {"team": "a"})
        assert {key: decode[key] for key in first if key in decode} == more
        assert found["spec"]["envs"] == manifest["spec"]["envs"]

    def stored() -> bool:
        decode = world.get(GRAPHS, name).spec["components"][1]
        return decode["replicas"] == 2 and "sharedMemorySize" not in decode

    await world.until(stored, "the change is stored")
    await world.until(lambda: ready(world, name), "it is ready")


async def test_graphs_are_listed_and_deleted_without_operator(
    cluster: LocalCluster, graphs: World, namespace: str
) -> None:
    client, doomed = graphs.client, f"{namespace}-doomed"
    connection = config.load(cluster.kubeconfig)
    await make_namespace(client, doomed)
    async with AsyncExitStack() as stack:
        async with replica(connection, namespace, **SWITCHES) as webhooks:
            bodies = registered(webhooks.url, namespace, operator=account(NAMESPACE, NAME), dynamo=True)
            await stack.enter_async_context(registering(client, bodies))
            await until_converting(client, namespace, webhooks)
            for each in (doomed, namespace):
                for name in ("a", "b", "c"):
                    body = named(OLD_MANIFEST, name)
                    if (each, name) == (namespace, "b"):
                        body["metadata"]["finalizers"] = ["example.com/held"]
                    await client.create(OLDER, body, namespace=each, as_type=Object)
        # From here on the webhook does not answer.
        assert len((await client.list(GRAPHS, namespace=namespace, as_type=Object)).items) == 3
        with pytest.raises(ApiError, match="conversion webhook"):
            await client.get(OLDER, "a", namespace=namespace, as_type=Object)
        for name in ("a", "b"):
            await client.delete(GRAPHS, name, namespace=namespace, as_type=Object)
        await client.patch(
            GRAPHS, "b", {"metadata": {"finalizers": None}}, namespace=namespace, as_type=Object
        )
        await graphs.until(lambda: graphs.names(GRAPHS) == ["c"], "both are deleted")
        await client.delete(NAMESPACES, doomed, as_type=Object)
        await eventually(lambda: _gone(client, doomed))
        async with operating(graphs, dynamo=SETTINGS):  # its webhooks do not answer either
            await graphs.until(lambda: ready(graphs, "c"), "an operator starts and works")
        for each in bodies:  # as Helm does when a release is uninstalled
            await client.delete(KINDS[each["kind"]], each["metadata"]["name"], as_type=Object)
        await eventually(lambda: detached(connection))
        assert await conversion(client) == {"strategy": "None"}

        async def served() -> bool:
            try:
                return bool(await client.get(OLDER, "c", namespace=namespace, as_type=dict))
            except ApiError:
                return False

        await eventually(served)
        await client.delete(OLDER, "c", namespace=namespace, as_type=Object)


async def detached(connection: Config) -> bool:
    """Whether `grove detach` succeeds: the API server may still call the webhooks of sets."""
    try:
        await detach_all(connection, Providers())
    except ApiError:
        return False
    return True


async def _gone(client: Client, name: str) -> bool:
    found = await client.list(NAMESPACES, as_type=Object)
    return all(each.metadata.name != name for each in found.items)
