"""Shared claims on a cluster that does not serve them, or does not let the operator see them; and
templates of another namespace, which need consent."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest
from msgspec.structs import replace

from grove.kube.client.resource import RESOURCE_CLAIMS
from grove.kube.client.transport import Request, Response, Stream, Transport
from tests.cluster.operator.scenarios.api_errors import complaints, says
from tests.cluster.operator.scenarios.shared_claims import (
    ASKS_FOR_ONE,
    DRIVER,
    consent,
    devices,
    elsewhere,
    shared_by_pods,
    template,
)
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import Body, clique, small, workload

SERVED = "/apis/resource.k8s.io/v1/"


class UsageError:
    """A transport on which an API is asked for where it is not: the server itself says so."""

    def __init__(self, inner: Transport, asked: str) -> None:
        self._inner, self._asked = inner, asked

    async def send(self, request: Request) -> Response:
        return await self._inner.send(self._elsewhere(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(self._elsewhere(request))

    async def close(self) -> None:
        await self._inner.close()

    def _elsewhere(self, request: Request) -> Request:
        return replace(request, path=request.path.replace(SERVED, self._asked))


class Misleading(Recorder):
    def __init__(self, namespace: str, asked: str) -> None:
        super().__init__(namespace)
        self._asked = asked

    def on(self, transport: Transport) -> Transport:
        return super().on(UsageError(transport, self._asked))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param("/apis/resource.k8s.io/v0/", id="not served"),
        pytest.param("/apis/other.k8s.io/v1/", id="not permitted"),
    ],
)
async def test_only_sets_that_share_wait_and_they_are_told_why(world: World, asked: str) -> None:
    async with devices(world):
        async with operating(world, recorder=Misleading(world.namespace, asked)):
            await world.create(SETS, shared_by_pods())
            await world.create(SETS, small("free"))
            await world.until(lambda: world.get(SETS, "free").status.get("availableReplicas") == 1)
            await world.until(lambda: says(world, SETS, "few", "the cluster must serve resource.k8s.io/v1"))
            assert not world.pods(part_of="few")
            await world.delete(SETS, "free")
            await world.until(lambda: not world.find(SETS, "free"), "it goes as well")
        async with operating(world):
            await world.until_ready()
    assert world.names(RESOURCE_CLAIMS) == ["few-0-worker-all-one"]


def spying(other: str) -> Body:
    """Each pod of the set has a claim made from a template of another namespace."""
    shared = {"name": "private", "namespace": other, "scope": "PerReplica"}
    return workload("spy", clique("worker", 2, 1, resourceSharing=[shared]))


def with_password() -> Body:
    parameters = {"driver": DRIVER, "parameters": {"password": "s3cret"}}
    return {"devices": {**ASKS_FOR_ONE["devices"], "config": [{"opaque": parameters}]}}


async def test_a_template_of_another_namespace_needs_consent(world: World) -> None:
    """Without it nothing of the template can be read, not even that it exists. Consent is acted on when the
    annotation changes; withdrawn, it leaves the claims that exist alone."""
    async with devices(world), elsewhere(world) as other, operating(world) as operator:
        await world.create(SETS, spying(other))
        await world.until(lambda: complaints(world, CLIQUES, "spy-0-worker"))
        missing = complaints(world, CLIQUES, "spy-0-worker")
        own, key = world.namespace, "grove.io/shared-with-namespaces"
        assert missing == [
            "[Operation: Sync, Code: ERR_SYNC_PCLQ_RESOURCE_CLAIM] message: "
            f"ResourceClaimTemplate {other}/private, which resourceSharing of worker refers to, does not "
            f"exist or is not shared with namespace {own}: create it, or add {own} to its annotation {key}"
        ]
        await template(world, other, "private", with_password())
        await consent(world, other, "private", f"{world.namespace}-not, default")
        await operator.recorder.silence()
        assert complaints(world, CLIQUES, "spy-0-worker") == missing, "the same words now that it exists"
        assert not world.all(RESOURCE_CLAIMS)
        assert not world.pods()
        await consent(world, other, "private", f"default, {world.namespace}")
        await world.until_ready()
        claims = ["spy-0-worker-0-private", "spy-0-worker-1-private"]
        assert world.names(RESOURCE_CLAIMS) == claims
        await consent(world, other, "private", None)
        await world.scale(CLIQUES, "spy-0-worker", 3)
        await world.until(lambda: complaints(world, CLIQUES, "spy-0-worker") == missing)
        assert world.names(RESOURCE_CLAIMS) == claims
        assert len(world.pods()) == 2
        await consent(world, other, "private", "*")
        await world.until_ready()
        assert len(world.pods()) == 3
