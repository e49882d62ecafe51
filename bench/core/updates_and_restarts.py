"""The cost of a running set: a rolling update, and the restart of a replica after gang termination."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bench.core.pod_timing import all_gone, watching
from bench.core.process_cost import Audit
from bench.core.setup import OURS, SETS, OperatorUnderTest, new_namespace, template
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS
from grove.local.cluster.lifecycle import LocalCluster

REPLICAS = 10
PODS_EACH = 7
SETTLING = 5.0  # seconds; the last statuses are written about one second after the last pods
CRASHED = {
    "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
    "containerStatuses": [
        {"name": "main", "image": "model", "imageID": "", "ready": False, "restartCount": 1,
         "lastState": {"terminated": {"exitCode": 1}}}
    ],
}  # fmt: skip
Result = dict[str, Any]


async def updated(client: Client, cluster: LocalCluster, tested: OperatorUnderTest = OURS) -> Result:
    """10 replicas of a frontend and a group of three: every pod is replaced, one unit at a time."""
    async with _deployed(client, cluster, tested, "updated") as (audit, until):
        template_ = template("groups", REPLICAS)["spec"]["template"]
        for clique in template_["cliques"]:
            clique["spec"]["podSpec"]["containers"][0]["image"] = "model:2"
        audit.calls()
        began = time.monotonic()
        await _patch(client, "updated", {"spec": {"template": template_}})
        await until(lambda found: _ended(found))
        seconds = time.monotonic() - began
        await asyncio.sleep(SETTLING)
        calls = audit.calls()
    pods = REPLICAS * PODS_EACH
    return {"pods": pods, "seconds": seconds, "calls": calls.total(), "by_call": dict(calls.most_common())}


async def recycled(client: Client, cluster: LocalCluster) -> Result:
    """One replica of seven pods whose frontend crashed: all of them are replaced at once."""
    async with _deployed(client, cluster, OURS, "recycled", terminationDelay="1s") as (audit, until):
        audit.calls()
        labels = "grove.io/podclique=groups-0-frontend"
        (pod,) = (await client.list(PODS, as_type=Object, namespace="recycled", labels=labels)).items
        name, began = pod.metadata.name, time.monotonic()
        body = {"status": CRASHED}
        await client.patch(PODS, name, body, namespace="recycled", subresource="status", as_type=Object)
        await until(lambda found: found.status.available_replicas < REPLICAS)
        await until(lambda found: found.status.available_replicas == REPLICAS)
        seconds = time.monotonic() - began
        await asyncio.sleep(SETTLING)
        calls = audit.calls()
    return {
        "pods": PODS_EACH, "seconds": seconds, "calls": calls.total(), "by_call": dict(calls.most_common())
    }  # fmt: skip


def _ended(found: PodCliqueSet) -> bool:
    progress = found.status.update_progress
    return progress is not None and progress.update_ended_at is not None


async def _patch(client: Client, namespace: str, body: Result) -> None:
    await client.patch(SETS, "groups", body, namespace=namespace, as_type=Object)


@asynccontextmanager
async def _deployed(
    client: Client, cluster: LocalCluster, tested: OperatorUnderTest, namespace: str, **template_fields: Any
) -> AsyncIterator[tuple[Audit, Any]]:
    """Deploy the set and wait until it is ready; yields the operator's calls, and a function that waits for a
    status."""
    await new_namespace(client, namespace)
    body = template("groups", REPLICAS)
    body["spec"]["template"] |= template_fields
    sets, changed = Cache(SETS, PodCliqueSet, namespace=namespace), asyncio.Event()
    sets.subscribe(lambda _old, _new: changed.set())

    async def until(holds: Callable[[PodCliqueSet], bool]) -> None:
        async with asyncio.timeout(600):
            while (found := sets.get(namespace, "groups")) is None or not holds(found):
                changed.clear()
                await changed.wait()

    async with tested.running(cluster), watching(client, namespace) as stopwatch:
        task = asyncio.create_task(Reflector(client, sets).run())
        await client.create(SETS, body, namespace=namespace, as_type=Object)
        await stopwatch.ready(REPLICAS * PODS_EACH, time.monotonic())
        await asyncio.sleep(SETTLING)
        yield Audit(cluster.state.audit_log, tested.user), until
        await client.delete(SETS, "groups", namespace=namespace, as_type=Object)
        await stopwatch.at_most(0, time.monotonic())
        await all_gone(client, SETS, namespace)  # or the operator of the next measurement deletes the rest
        task.cancel()
        await asyncio.wait([task])
