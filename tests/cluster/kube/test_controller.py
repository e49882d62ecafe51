"""A small controller with cache, queue and executor on a real server: it converges under faults.

Each ConfigMap labelled `role=parent` has as many children as its data says, named after its UID, and a member
list that names them before they are created. The plan is a pure function of the caches, as in the operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import Struct

from grove.api.intents import Create, Delete, Intent, Patch, Target
from grove.api.meta import ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS
from grove.kube.client.retry import Backoff
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.kube.executor.name_conflict import controller
from grove.kube.testing.faults import FaultRates, FaultyTransport
from grove.kube.workqueue.queue import WorkQueue

pytestmark = pytest.mark.cluster

FAULT_RATES = FaultRates(
    conflict=0.1,
    throttle=0.05,
    error=0.1,
    lose=0.15,
    delay=0.1,
    drop=0.02,
    cut=0.05,
    duplicate=0.1,
    reorder=0.1,
    longest_delay=0.05,
)


class ConfigMap(Struct, frozen=True):
    """The fields of a ConfigMap that the plan reads."""

    metadata: ObjectMeta
    data: dict[str, str] = {}

    @property
    def role(self) -> str:
        return self.metadata.labels.get("role", "")


def plan(parent: ConfigMap, members: ConfigMap | None, children: list[ConfigMap]) -> list[Intent]:
    """Creates of missing children and deletes of surplus ones, after the member list."""
    meta = parent.metadata
    wanted = [f"{meta.name}-{meta.uid[:8]}-{index}" for index in range(int(parent.data["children"]))]
    names = ",".join(wanted)
    steps: list[Intent] = []
    members_target = Target("v1", "ConfigMap", f"{meta.name}-members", meta.namespace)
    if members is None:
        steps.append(
            Create(
                members_target,
                {
                    "metadata": child_metadata(parent, members_target.name, "members"),
                    "data": {"names": names},
                },
            )
        )
    elif members.data.get("names") != names:
        version = {"resourceVersion": members.metadata.resource_version}
        steps.append(Patch(members_target, {"metadata": version, "data": {"names": names}}))
    after = tuple(step.id for step in steps)
    alive = {child.metadata.name for child in children}
    for name in wanted:
        if name not in alive:
            target = Target("v1", "ConfigMap", name, meta.namespace)
            steps.append(Create(target, {"metadata": child_metadata(parent, name, "child")}, after))
    for child in children:
        if child.metadata.name not in wanted and not child.metadata.deletion_timestamp:
            target = Target("v1", "ConfigMap", child.metadata.name, meta.namespace)
            steps.append(Delete(target, uid=child.metadata.uid, after=after))
    return steps


def child_metadata(parent: ConfigMap, name: str, role: str) -> dict[str, object]:
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": parent.metadata.name,
        "uid": parent.metadata.uid,
    }
    labels = {"app": "loop", "role": role, "parent": parent.metadata.name}
    return {"name": name, "labels": labels, "ownerReferences": [{**owner, "controller": True}]}


class Controller:
    """Cache, queue and executor, connected as in the operator."""

    def __init__(self, transport: FaultyTransport, namespace: str) -> None:
        self.namespace = namespace
        self.cache = Cache(
            CONFIG_MAPS,
            ConfigMap,
            namespace=namespace,
            labels={"app": "loop"},
            indexes={"parent": lambda found: [found.metadata.labels.get("parent") or found.metadata.name]},
        )
        self.executor = Executor(transport, [CONFIG_MAPS], store=CacheStore([self.cache]))
        self.queue: WorkQueue[str] = WorkQueue(
            "loop", self.work, workers=8, backoff=Backoff(first=0.02, longest=0.5)
        )
        self.cache.subscribe(lambda old, new: self.queue.enqueue(_key(new or old)))
        self.passes = 0

    async def work(self, key: str) -> None:
        self.passes += 1
        parent = self.cache.get(self.namespace, key)
        if parent is None:
            return
        family = [one for one in self.cache.by_index("parent", key) if controller(one.metadata)]
        members = next((one for one in family if one.role == "members"), None)
        steps = plan(parent, members, [one for one in family if one.role == "child"])
        outcome = await self.executor.execute(steps)
        self.queue.enqueue(key, None, failed=outcome.failed or outcome.outdated)


def _key(found: ConfigMap | None) -> str:
    assert found is not None
    return found.metadata.labels.get("parent") or found.metadata.name


@asynccontextmanager
async def running(transport: FaultyTransport, namespace: str) -> AsyncIterator[Controller]:
    built = Controller(transport, namespace)
    watch = asyncio.create_task(Reflector(Client(transport), built.cache).run())
    await built.cache.synced.wait()
    built.queue.start()
    try:
        yield built
    finally:
        await built.queue.stop()
        watch.cancel()
        await asyncio.wait({watch})


async def set_children(client: Client, namespace: str, name: str, count: int) -> None:
    body = {"data": {"children": str(count)}}
    await client.patch(CONFIG_MAPS, name, body, namespace=namespace, as_type=ConfigMap)


async def converged(client: Client, namespace: str, wanted: dict[str, int]) -> None:
    """Wait until the server, watched without faults, has exactly the wanted children."""
    observed = Cache(CONFIG_MAPS, ConfigMap, namespace=namespace, labels={"app": "loop"})
    changed = asyncio.Event()
    observed.subscribe(lambda _old, _new: changed.set())
    watch = asyncio.create_task(Reflector(client, observed).run())
    try:
        async with asyncio.timeout(120):
            while counts(observed, wanted) != wanted:
                await changed.wait()
                changed.clear()
    finally:
        watch.cancel()
        await asyncio.wait({watch})


def counts(cache: Cache[ConfigMap], names: dict[str, int]) -> dict[str, int]:
    found = dict.fromkeys(names, 0)
    for one in cache:
        if one.role == "child" and not one.metadata.deletion_timestamp:
            found[one.metadata.labels["parent"]] += 1
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_controller_converges_under_random_faults(client: Client, namespace: str, seed: int) -> None:
    transport = FaultyTransport(client.transport, seed=seed, rates=FAULT_RATES)
    parents = {f"p{index}": index + 1 for index in range(6)}
    for name, count in parents.items():
        body = {
            "metadata": {"name": name, "labels": {"app": "loop", "role": "parent"}},
            "data": {"children": str(count)},
        }
        await client.create(CONFIG_MAPS, body, namespace=namespace, as_type=ConfigMap)
    async with running(transport, namespace):
        await converged(client, namespace, parents)
        parents = {name: (count * 3) % 7 for name, count in parents.items()}
        for name, count in parents.items():
            await set_children(client, namespace, name, count)
        await converged(client, namespace, parents)
    assert transport.fault_counts["lose"], "faults were injected"


@pytest.mark.parametrize("writes", range(1, 7))
async def test_next_process_finishes_after_stop_at_any_write(
    client: Client, namespace: str, writes: int
) -> None:
    stopped = asyncio.Event()
    transport = FaultyTransport(client.transport, stop_after_writes=writes, on_stop=stopped.set)
    body = {
        "metadata": {"name": "p", "labels": {"app": "loop", "role": "parent"}},
        "data": {"children": "5"},
    }
    await client.create(CONFIG_MAPS, body, namespace=namespace, as_type=ConfigMap)
    async with running(transport, namespace):
        await stopped.wait()
    listed = (await client.list(CONFIG_MAPS, as_type=ConfigMap, namespace=namespace, labels="app=loop")).items
    (members,) = [one for one in listed if one.role == "members"]
    created = {one.metadata.name for one in listed if one.role == "child"}
    assert created <= set(members.data["names"].split(",")), "the member list is written first"
    async with running(FaultyTransport(client.transport), namespace):
        await converged(client, namespace, {"p": 5})


async def test_without_faults_each_write_is_sent_once(client: Client, namespace: str) -> None:
    transport = FaultyTransport(client.transport)
    body = {
        "metadata": {"name": "p", "labels": {"app": "loop", "role": "parent"}},
        "data": {"children": "20"},
    }
    await client.create(CONFIG_MAPS, body, namespace=namespace, as_type=ConfigMap)
    async with running(transport, namespace) as built:
        await converged(client, namespace, {"p": 20})
        await built.queue.stop()  # the watch may be faster than the replies
        assert transport.writes == 21  # the member list and twenty children
        passes = built.passes
        await built.work("p")  # once more, with nothing to do
        assert (transport.writes, built.passes) == (21, passes + 1)
