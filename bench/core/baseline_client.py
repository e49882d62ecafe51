"""The floors: clients without any logic, 32 requests in flight. Runs as a separate process.

    python -m bench.core.baseline_client pods|contract KUBECONFIG NAMESPACE REPLICAS [PODS]

`pods` creates the pods of each replica, two by default. `contract` writes what the API requires of any
operator: per replica a Service, a PodClique, a PodGang that references its pods, those pods, and one status
each for clique and gang.
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

from grove.kube.auth import config, tls

IN_FLIGHT = 32
PODS_EACH = 2
GROVE = "/apis/grove.io/v1alpha1/namespaces/{}/podcliques"
GANGS = "/apis/scheduler.grove.io/v1alpha1/namespaces/{}/podgangs"
PODS = "/api/v1/namespaces/{}/pods"
SERVICES = "/api/v1/namespaces/{}/services"
POD_SPEC = {
    "containers": [{"name": "worker", "image": "model", "resources": {"requests": {"memory": "80Mi"}}}]
}


class BareClient:
    """Sends requests without decoding or retries."""

    def __init__(self, session: aiohttp.ClientSession, server: str, namespace: str) -> None:
        self._session, self._server, self._namespace = session, server, namespace

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await self._send("POST", path.format(self._namespace), body, "application/json")

    async def patch_status(self, path: str, name: str, status: dict[str, Any]) -> None:
        where = f"{path.format(self._namespace)}/{name}/status"
        await self._send("PATCH", where, {"status": status}, "application/merge-patch+json")

    async def _send(self, method: str, path: str, body: dict[str, Any], kind: str) -> dict[str, Any]:
        headers = {"Content-Type": kind, "Accept-Encoding": "identity"}
        data = msgspec.json.encode(body)
        async with self._session.request(method, self._server + path, data=data, headers=headers) as reply:
            answer = await reply.read()
            assert reply.status in (200, 201), answer
            created: dict[str, Any] = msgspec.json.decode(answer)
            return created


def _meta(name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": {"bench": "floor", "app.kubernetes.io/name": name}}
    if owner:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        meta["ownerReferences"] = [
            {
                **reference,
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
    return meta


def _pod(name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    meta = _meta(name, owner)
    if owner:
        meta["labels"]["app.kubernetes.io/instance"] = owner["metadata"]["name"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD_SPEC}


async def pods(bare: BareClient, replica: int, count: int) -> None:
    for number in range(count):
        await bare.post(PODS, _pod(f"floor-{replica}-{number}"))


async def objects(bare: BareClient, replica: int, count: int) -> None:
    """Service, clique, gang and pods of a replica."""
    name = f"floor-{replica}"
    names = [f"{name}-worker-{number}" for number in range(count)]
    service = {"clusterIP": "None", "selector": {"app.kubernetes.io/instance": name}}
    await bare.post(
        SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": _meta(name), "spec": service}
    )
    spec = {"roleName": "worker", "replicas": count, "minAvailable": count, "podSpec": POD_SPEC}
    clique = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": _meta(name), "spec": spec}
    created = await bare.post(GROVE, clique)
    references = [{"namespace": "default", "name": pod} for pod in names]
    group = {"name": name, "minReplicas": count, "podReferences": references}
    gang = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": _meta(name)}
    await bare.post(GANGS, {**gang, "spec": {"podgroups": [group]}})
    for pod in names:
        await bare.post(PODS, _pod(pod, created))


async def statuses(bare: BareClient, replica: int, count: int) -> None:
    """The statuses of clique and gang."""
    name = f"floor-{replica}"
    counts = dict.fromkeys(("replicas", "readyReplicas", "scheduledReplicas", "updatedReplicas"), count)
    await bare.patch_status(GROVE, name, {**counts, "scheduleGatedReplicas": 0})
    await bare.patch_status(GANGS, name, {"phase": "Running"})


@asynccontextmanager
async def connected(kubeconfig: str, namespace: str) -> AsyncIterator[BareClient]:
    found = config.load(Path(kubeconfig))
    certificate = (await found.credentials.current()).certificate
    authority = found.authority.read() if found.authority else None
    trust = tls.context(authority, certificate, insecure=False)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as session:
        yield BareClient(session, found.server, namespace)


Step = Callable[[BareClient, int, int], Awaitable[None]]
STEPS: dict[str, tuple[Step, ...]] = {"pods": (pods,), "contract": (objects, statuses)}
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
