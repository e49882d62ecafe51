"""Objects of any content, stored while no webhook was installed, on the real API server with the conversion
webhook: one that it could not convert would fail each LIST of that version, in all namespaces."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from grove import timing
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource
from grove.kube.errors import DecodeError
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import GRAPHS
from tests.cluster.operator.dynamo.conftest import dynamo_account  # noqa: F401 - a fixture
from tests.cluster.operator.support.world import World
from tests.cluster.webhooks.harness import registered, registering, replica
from tests.cluster.webhooks.test_conversion import (
    NEW_MANIFEST,
    OLD_MANIFEST,
    OLDER,
    SWITCHES,
    graphs,  # noqa: F401 - a fixture
    until_converting,
)
from tests.dynamo.builders import alpha, component, deployment, service

pytestmark = pytest.mark.cluster


def sidecar_first(args: list[str]) -> dict[str, Any]:
    """A component that v1alpha1 cannot express: there the main container is the first one."""
    found = component(main={"args": args})
    found["podTemplate"]["spec"]["containers"].insert(0, {"name": "x", "image": "y"})
    return found


def nested(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


LARGE = "x" * timing.MAX_ANNOTATIONS
BETA_BODIES = {
    "large": deployment(sidecar_first([LARGE])),
    "annotated": {**NEW_MANIFEST, "metadata": {"annotations": {"note": LARGE[:-100]}}},
    "deep": deployment(component(unknown=nested(300))),
    "types": deployment(
        {"name": "a", "unknown": [1, None, {"x": 1.5}], "podTemplate": {"spec": {"containers": 7}}}
    ),
    "preserved": {
        **NEW_MANIFEST,
        "metadata": {"annotations": {"nvidia.com/dgd-v1alpha1": '{"spec": {"services": [1], "x": 1e999}}'}},
    },
    "none": deployment(),
    "both": deployment(component(), services={"A": {"replicas": 3}}),
}
ALPHA_BODIES = {
    "old": OLD_MANIFEST,
    "old-large": alpha(A=service(envs=[{"name": "V", "value": LARGE}])),
    "old-types": alpha({"envs": [{"name": "a"}]}, A={"extraPodSpec": {"mainContainer": [1]}, "unknown": 2}),
}


async def sent(writing: Awaitable[Any]) -> None:
    """A write whose reply may nest more deeply than our own client reads."""
    with suppress(DecodeError):
        await writing


async def listed(client: Client, resource: Resource, namespace: str) -> list[str]:
    found = await client.list(resource, namespace=namespace, as_type=Object)
    return sorted(each.metadata.name for each in (*found.items, *found.undecodable))


async def test_object_of_any_content_blocks_no_list(
    cluster: LocalCluster,
    graphs: World,  # noqa: F811
    namespace: str,
) -> None:
    client = graphs.client
    for resource, bodies in ((GRAPHS, BETA_BODIES), (OLDER, ALPHA_BODIES)):
        for name, body in bodies.items():
            annotations = body["metadata"].get("annotations", {})
            meta = {"name": name, "annotations": annotations}
            body = {**body, "metadata": meta}
            await sent(client.create(resource, body, namespace=namespace, as_type=Object))
    names = sorted([*BETA_BODIES, *ALPHA_BODIES])
    connection = config.load(cluster.kubeconfig)
    async with AsyncExitStack() as stack:
        webhooks = await stack.enter_async_context(replica(connection, namespace, **SWITCHES))
        bodies = registered(webhooks.url, namespace, dynamo=True)
        await stack.enter_async_context(registering(client, bodies))
        await until_converting(client, namespace, webhooks)
        assert await listed(client, GRAPHS, namespace) == names
        assert await listed(client, OLDER, namespace) == names
        # A change in the other version loses nothing of an object that is too large to be converted.
        labels = {"metadata": {"labels": {"a": "b"}}}
        await client.patch(OLDER, "large", labels, namespace=namespace, as_type=Object)
        after = await client.get(GRAPHS, "large", namespace=namespace, as_type=dict)
        assert after["metadata"]["labels"] == {"a": "b"}
        (stored,), (written,) = after["spec"]["components"], BETA_BODIES["large"]["spec"]["components"]
        assert stored == {**written, "replicas": 1, "minAvailable": 1}
        for name in names:
            await sent(client.delete(OLDER, name, namespace=namespace, as_type=Object))
        assert await listed(client, GRAPHS, namespace) == []
