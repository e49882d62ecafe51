"""The floors: clients without any logic, 32 requests in flight. Runs as a separate process.

    python -m bench.core.baseline_client pods|contract|sets KUBECONFIG NAMESPACE REPLICAS [PODS]

`pods` creates the pods of each replica, two by default. `contract` writes what the API requires of any
operator: per replica a Service, a PodClique, a PodGang that references its pods, those pods, and one status
each for clique and gang. `sets` also writes a set for each replica: the set itself, its finalizer, and its
status when created and when available.
All objects are created first, so that no pod waits for a status; then the statuses are written. Starts
with the first line that it reads, and prints the seconds of CPU time from then on: what an operator that runs
already needs for the same.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.core import contract_objects as contract
from grove.api.naming import names
from grove.kube.auth import config, tls

IN_FLIGHT = 32
SET_NAME = "floor"
PODS_EACH = 2
SETS = "/apis/grove.io/v1alpha1/namespaces/{}/podcliquesets"
GROVE = "/apis/grove.io/v1alpha1/namespaces/{}/podcliques"
GANGS = "/apis/scheduler.grove.io/v1alpha1/namespaces/{}/podgangs"
PODS = "/api/v1/namespaces/{}/pods"
SERVICES = "/api/v1/namespaces/{}/services"


class BareClient:
    """Sends requests without watches or retries."""

    def __init__(self, session: aiohttp.ClientSession, server: str, namespace: str) -> None:
        self._session, self._server, self.namespace = session, server, namespace

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await self._send("POST", path.format(self.namespace), body, "application/json")

    async def patch(self, path: str, name: str, change: dict[str, Any]) -> None:
        where = f"{path.format(self.namespace)}/{name}"
        await self._send("PATCH", where, change, "application/merge-patch+json")

    async def patch_status(self, path: str, name: str, status: dict[str, Any]) -> None:
        await self.patch(path, f"{name}/status", {"status": status})

    async def _send(self, method: str, path: str, body: dict[str, Any], kind: str) -> dict[str, Any]:
        headers = {"Content-Type": kind, "Accept-Encoding": "identity"}
        data = msgspec.json.encode(body)
        async with self._session.request(method, self._server + path, data=data, headers=headers) as reply:
            answer = await reply.read()
            assert reply.status in (200, 201), answer
            created: dict[str, Any] = msgspec.json.decode(answer)
            return created


async def pods(bare: BareClient, replica: int, count: int) -> None:
    """Bare pods."""
    for number in range(count):
        name = f"floor-{replica}-{number}"
        metadata = {"name": name, "labels": {"bench": "floor", "app.kubernetes.io/name": name}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": contract.POD_SPEC}
        await bare.post(PODS, body)


async def objects(bare: BareClient, replica: int, count: int) -> None:
    """All objects of a replica of one set."""
    await _objects(bare, SET_NAME, replica, count)


async def statuses(bare: BareClient, replica: int, count: int) -> None:
    """The statuses of a replica of one set."""
    await _statuses(bare, SET_NAME, replica, count)


async def set_and_objects(bare: BareClient, number: int, count: int) -> None:
    """A set of one replica, and what that replica consists of."""
    name = f"floor-{number}"
    await bare.post(SETS, contract.podcliqueset(name, count))
    await bare.patch(SETS, name, {"metadata": {"finalizers": ["grove.io/floor"]}})
    await bare.patch_status(SETS, name, {"replicas": 1, "availableReplicas": 0})
    await _objects(bare, name, 0, count)


async def set_and_statuses(bare: BareClient, number: int, count: int) -> None:
    """The statuses of clique and gang, and the last one of the set."""
    await _statuses(bare, f"floor-{number}", 0, count)
    await bare.patch_status(SETS, f"floor-{number}", {"availableReplicas": 1})


async def _objects(bare: BareClient, set_name: str, replica: int, count: int) -> None:
    await bare.post(SERVICES, contract.service(set_name, replica))
    clique = await bare.post(GROVE, contract.podclique(set_name, replica, count))
    await bare.post(GANGS, contract.podgang(set_name, replica, bare.namespace, count))
    for number in range(count):
        body = contract.pod(set_name, replica, bare.namespace, number, clique["metadata"]["uid"])
        await bare.post(PODS, body)


async def _statuses(bare: BareClient, set_name: str, replica: int, count: int) -> None:
    counts = dict.fromkeys(("replicas", "readyReplicas", "scheduledReplicas", "updatedReplicas"), count)
    clique, gang = names.clique(set_name, replica, contract.CLIQUE), names.base_gang(set_name, replica)
    await bare.patch_status(GROVE, clique, {**counts, "scheduleGatedReplicas": 0})
    await bare.patch_status(GANGS, gang, {"phase": "Running"})


@asynccontextmanager
async def connected(kubeconfig: str, namespace: str) -> AsyncIterator[BareClient]:
    found = config.load(Path(kubeconfig))
    certificate = (await found.credentials.current()).certificate
    authority = found.authority.read() if found.authority else None
    trust = tls.context(authority, certificate, insecure=False)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as session:
        yield BareClient(session, found.server, namespace)


Step = Callable[[BareClient, int, int], Awaitable[None]]
STEPS: dict[str, tuple[Step, ...]] = {
    "pods": (pods,),
    "contract": (objects, statuses),
    "sets": (set_and_objects, set_and_statuses),
}
"""What is done for all replicas, one step after another."""


async def run(kind: str, kubeconfig: str, namespace: str, replicas: int, pods_each: int = PODS_EACH) -> float:
    """Returns the seconds of CPU time."""
    async with connected(kubeconfig, namespace) as bare:

        async def worker(step: Step, numbers: Iterator[int]) -> None:
            for number in numbers:
                await step(bare, number, pods_each)

        print("connected", flush=True)
        sys.stdin.readline()
        began = time.process_time()
        for step in STEPS[kind]:
            numbers = iter(range(replicas))
            await asyncio.gather(*(worker(step, numbers) for _ in range(IN_FLIGHT)))
        return time.process_time() - began


if __name__ == "__main__":
    print(asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))))
