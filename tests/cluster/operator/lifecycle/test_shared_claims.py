"""Shared claims where resource.k8s.io/v1 is not served or the operator may not read it, and templates of
another namespace, which need consent."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest
from msgspec.structs import replace

from grove.kube.client.resource import RESOURCE_CLAIMS
from grove.kube.client.transport import Request, Response, Stream, Transport
from tests.cluster.operator.scenarios.api_errors import last_errors, says
from tests.cluster.operator.scenarios.shared_claims import (
    DRIVER,
    ONE_DEVICE,
    consent,
    devices,
    other_namespace,
    shared_by_pods,
    template,
)
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import Body, clique, small, workload

SERVED = "/apis/resource.k8s.io/v1/"


class RewritingTransport:
    """Sends requests for resource.k8s.io/v1 to another API path, so that the real API server refuses them."""

    def __init__(self, inner: Transport, path: str) -> None:
        self._inner, self._path = inner, path

    async def send(self, request: Request) -> Response:
        return await self._inner.send(self._rewritten(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(self._rewritten(request))

    async def close(self) -> None:
        await self._inner.close()

    def _rewritten(self, request: Request) -> Request:
        return replace(request, path=request.path.replace(SERVED, self._path))


class RewritingRecorder(Recorder):
    def __init__(self, namespace: str, path: str) -> None:
        super().__init__(namespace)
        self._path = path

    def on(self, transport: Transport) -> Transport:
        return super().on(RewritingTransport(transport, self._path))


@pytest.mark.proves("shared-claims", scheduler="any")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/apis/resource.k8s.io/v0/", id="not served"),
        pytest.param("/apis/other.k8s.io/v1/", id="not permitted"),
    ],
)
async def test_missing_claim_api_holds_only_sharing_sets(world: World, path: str) -> None:
    async with devices(world):
        async with operating(world, recorder=RewritingRecorder(world.namespace, path)):
            await world.create(SETS, shared_by_pods())
            await world.create(SETS, small("free"))
            await world.until(lambda: world.get(SETS, "free").status.get("availableReplicas") == 1)
            await world.until(lambda: says(world, SETS, "few", "the cluster must serve resource.k8s.io/v1"))
            assert not world.pods(part_of="few")
            await world.delete(SETS, "free")
            await world.until(lambda: not world.find(SETS, "free"), "the set deleted")
        async with operating(world):
            await world.until_ready()
    assert world.names(RESOURCE_CLAIMS) == ["few-0-worker-all-one"]


def sharing_from(other: str) -> Body:
    """Each pod of the set has a claim created from a template of another namespace."""
    shared = {"name": "private", "namespace": other, "scope": "PerReplica"}
    return workload("spy", clique("worker", 2, 1, resourceSharing=[shared]))


def with_password() -> Body:
    parameters = {"driver": DRIVER, "parameters": {"password": "s3cret"}}
    return {"devices": {**ONE_DEVICE["devices"], "config": [{"opaque": parameters}]}}


@pytest.mark.proves("shared-claims", scheduler="any")
async def test_template_of_other_namespace_needs_consent(world: World) -> None:
    """Without consent nothing of the template can be read, not even that it exists. A changed annotation
    takes effect at once; existing claims stay when consent is withdrawn."""
    async with devices(world), other_namespace(world) as other, operating(world) as operator:
        await world.create(SETS, sharing_from(other))
        await world.until(lambda: last_errors(world, CLIQUES, "spy-0-worker"))
        missing = last_errors(world, CLIQUES, "spy-0-worker")
        own, key = world.namespace, "grove.io/shared-with-namespaces"
        assert missing == [
            "[Operation: Sync, Code: ERR_SYNC_PCLQ_RESOURCE_CLAIM] message: "
            f"ResourceClaimTemplate {other}/private, which resourceSharing of worker refers to, does not "
            f"exist or is not shared with namespace {own}: create it, or add {own} to its annotation {key}"
        ]
        await template(world, other, "private", with_password())
        await consent(world, other, "private", f"{world.namespace}-not, default")
        await operator.recorder.until_quiet()
        assert last_errors(world, CLIQUES, "spy-0-worker") == missing, "the same message although it exists"
        assert not world.all(RESOURCE_CLAIMS)
        assert not world.pods()
        await consent(world, other, "private", f"default, {world.namespace}")
        await world.until_ready()
        claims = ["spy-0-worker-0-private", "spy-0-worker-1-private"]
        assert world.names(RESOURCE_CLAIMS) == claims
        await consent(world, other, "private", None)
        await world.scale(CLIQUES, "spy-0-worker", 3)
        await world.until(lambda: last_errors(world, CLIQUES, "spy-0-worker") == missing)
        assert world.names(RESOURCE_CLAIMS) == claims
        assert len(world.pods()) == 2
        await consent(world, other, "private", "*")
        await world.until_ready()
        assert len(world.pods()) == 3
