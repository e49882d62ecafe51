"""Shared claims on a cluster that does not serve them, or does not let the operator see them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest
from msgspec.structs import replace

from grove.kube.resource import RESOURCE_CLAIMS
from grove.kube.transport import Request, Response, Stream, Transport
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.recorder import Recorder
from tests.cluster.operator.scenarios.refusals import says
from tests.cluster.operator.scenarios.sharing import devices, shared_by_pods
from tests.cluster.operator.seen import SETS
from tests.cluster.operator.workloads import small

SERVED = "/apis/resource.k8s.io/v1/"


class Misled:
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
        return super().on(Misled(transport, self._asked))


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
            await world.until(lambda: says(world, SETS, "few", "does the cluster serve resource.k8s.io/v1"))
            assert not world.pods(part_of="few")
            await world.delete(SETS, "free")
            await world.until(lambda: not world.find(SETS, "free"), "it goes as well")
        async with operating(world):
            await world.until_whole()
    assert world.names(RESOURCE_CLAIMS) == ["few-0-worker-all-one"]
