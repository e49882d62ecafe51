"""A storm of foreign pods: more than the cluster holds, of several sizes and priorities, coming and going."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, PRIORITY_CLASSES
from grove.kube.errors import AlreadyExists, NotFound
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.world import PATIENCE
from tests.namespaces import make_namespace

LOW, HIGH = "low", "high"
PRIORITIES = {LOW: -10, HIGH: 1000}
_STEP = 0.1


async def create_priorities(client: Client) -> None:
    """Create a PriorityClass below and one above the default priority."""
    for name, value in PRIORITIES.items():
        with suppress(AlreadyExists):
            await client.create(
                PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}, as_type=Object
            )


def foreign_pod(name: str, gpus: int, priority: str = "", **spec: Any) -> dict[str, Any]:
    """A pod that is none of ours."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "other:1", "resources": resources}],
            "terminationGracePeriodSeconds": 0,
            **({"priorityClassName": priority} if priority else {}),
            **spec,
        },
    }


class Storm:
    """Creates pods at a rate, as long as not too many wait, and deletes bound ones at random."""

    def __init__(
        self, client: Client, namespace: str, *, rate: int, limit: int, priorities: Sequence[str], seed: int
    ) -> None:
        self._client, self._namespace = client, namespace
        self._rate, self._limit, self._priorities = rate, limit, priorities
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self.cache = Cache(PODS, AnyObject, namespace=namespace)
        self._created: set[str] = set()
        self._ends = False

    async def run(self) -> None:
        """Until it ends: requests that were sent are waited for."""
        while not self._ends:
            pods = [pod for pod in self.cache if not pod.terminating]
            bound = [pod for pod in pods if pod.spec.get("nodeName")]
            count = max(0, min(int(self._rate * _STEP), self._limit - len(pods)))
            leaving = self._random.sample(bound, min(len(bound), max(1, len(bound) // 20)))
            await asyncio.gather(
                *(self._create() for _ in range(count)), *(self._delete(pod.name) for pod in leaving)
            )
            await asyncio.sleep(_STEP)

    async def _create(self) -> None:
        name = f"foreign-{next(self._numbers)}"
        body = foreign_pod(name, self._random.choice((1, 2, 4, 8)), self._random.choice(self._priorities))
        self._created.add(name)
        await self._client.create(PODS, body, namespace=self._namespace, as_type=Object)

    async def _delete(self, name: str) -> None:
        self._created.discard(name)
        with suppress(NotFound):
            await self._client.delete(PODS, name, namespace=self._namespace, grace_seconds=0, as_type=Object)

    async def end(self, run: asyncio.Task[None]) -> None:
        """Delete all pods."""
        self._ends = True
        await asyncio.wait({run})
        await asyncio.gather(*map(self._delete, tuple(self._created)))
        run.result()


@asynccontextmanager
async def raging(
    client: Client, namespace: str, *, rate: int, limit: int, priorities: Sequence[str], seed: int = 0
) -> AsyncIterator[Storm]:
    """A storm in a namespace of its own, until the block is left; then its pods are deleted."""
    await make_namespace(client, namespace)
    storm = Storm(client, namespace, rate=rate, limit=limit, priorities=priorities, seed=seed)
    watch = asyncio.create_task(Reflector(client, storm.cache).run())
    async with asyncio.timeout(PATIENCE):
        await storm.cache.synced.wait()
    run = asyncio.create_task(storm.run())
    try:
        yield storm
    finally:
        await storm.end(run)
        watch.cancel()
        await asyncio.wait({watch})
