"""The namespace of a test on the real control plane (`World`), read through watches of the test's own.

The test acts on the cluster as its administrator and waits for watch events; it does not read the operator's
caches.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from grove.api.naming import labels
from grove.kube.auth.config import Config
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import MERGE, Client, PatchKind
from grove.kube.client.resource import PODS, SERVICES, Resource
from tests.cluster.operator.support.cleanup import clear
from tests.cluster.operator.support.objects import (
    CLIQUES,
    GANGS,
    GROUPS,
    PARTS,
    SETS,
    AnyObject,
    describe,
    is_ready,
    updating,
)
from tests.cluster.operator.support.pod_history import one_runnable_pod_an_index
from tests.cluster.operator.support.state_snapshot import StateSnapshot, differences, take_snapshot

PATIENCE = 120.0
REASON_GONE = 30.0
"""Seconds until objects no longer say why pods wait that are ready."""
GARBAGE = 300.0
"""Seconds for Kubernetes' garbage collector to discover a new kind: half a minute or a minute, and on a busy
machine it restarts its discovery if that has not finished by then."""


class RunningOperator(Protocol):
    """An operator that runs in the namespace."""

    def check(self) -> None:
        """Raise if the operator has ended."""

    def dump(self) -> list[str]:
        """The last calls, as text for a failed assertion."""


class ScenarioObserver(Protocol):
    """Is called at the checkpoints of a scenario, to record or to compare (see `scenario_runs`)."""

    async def wait(self) -> None:
        """The scenario is about to wait."""

    async def stop_comparing_deletes(self) -> None:
        """The scenario is about to delete or scale in a set, group or clique."""

    async def checkpoint(self, name: str, when: Callable[[], object], compared: bool) -> None:
        """The scenario has a checkpoint here."""


class World:
    """A namespace: the objects in it, and what a user can do with them."""

    def __init__(self, client: Client, config: Config, namespace: str) -> None:
        self.client, self.config, self.namespace = client, config, namespace
        self._caches: dict[Resource, Cache[AnyObject]] = {}
        self._tick = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._rules: list[Callable[[], None]] = []
        self._broken: list[AssertionError] = []
        self.changes: Counter[Resource] = Counter()
        """The number of changes seen, by kind."""
        self.operators: list[RunningOperator] = []
        self.observer: ScenarioObserver | None = None

    # Reading.

    async def watch(self, *resources: Resource) -> None:
        """Watch these kinds from now on."""
        for resource in resources:
            cache = self._caches[resource] = Cache(resource, AnyObject, namespace=self.namespace)
            cache.subscribe(partial(self._changed, resource))
            self._tasks.add(asyncio.create_task(Reflector(self.client, cache).run()))
        async with asyncio.timeout(PATIENCE):
            for resource in resources:
                await self._caches[resource].synced.wait()

    def all(self, resource: Resource, **wanted: str) -> list[AnyObject]:
        """All objects of a kind, by name; `part_of="x"` keeps those of one set."""
        keys = {"part_of": labels.PART_OF, "clique": labels.CLIQUE, "gang": labels.GANG}
        chosen = {keys[key]: value for key, value in wanted.items()}
        found = [one for one in self._caches[resource] if chosen.items() <= one.labels.items()]
        return sorted(found, key=lambda one: one.name)

    def names(self, resource: Resource, **wanted: str) -> list[str]:
        return [found.name for found in self.all(resource, **wanted)]

    def get(self, resource: Resource, name: str) -> AnyObject:
        found = self.find(resource, name)
        assert found is not None, f"no {resource.kind} {name}\n{self.dump()}"
        return found

    def find(self, resource: Resource, name: str) -> AnyObject | None:
        return self._caches[resource].get(self.namespace, name)

    def gone(self, resource: Resource, seen: AnyObject) -> bool:
        """Whether this object is deleted; another one may have its name."""
        found = self.find(resource, seen.name)
        return found is None or found.uid != seen.uid

    def pods(self, **wanted: str) -> list[AnyObject]:
        """The pods that are not terminating."""
        return [pod for pod in self.all(PODS, **wanted) if not pod.terminating]

    def all_ready(self) -> bool:
        """Whether all objects of all sets exist, are ready and reported as such, and no object terminates."""
        everything = [found for cache in self._caches.values() for found in cache]
        sets = self.all(SETS)
        owners = {found.uid for found in everything}
        if any(found.terminating or not owners.issuperset(found.owners) for found in everything):
            return False
        if not sets:
            return not any(self.all(part) for part in PARTS)
        return (
            all(found.settled for found in (*sets, *self.all(GROUPS), *self.all(CLIQUES)))
            and all(found.status.get("availableReplicas", 0) == found.spec["replicas"] for found in sets)
            and sum(found.spec["replicas"] for found in sets) == len(self.all(SERVICES))
            and self._cliques_ready()
            and all(gang.status.get("phase") == "Running" for gang in self.all(GANGS))
            and not any(map(updating, (*sets, *self.all(GROUPS), *self.all(CLIQUES))))
        )

    def _cliques_ready(self) -> bool:
        """Whether every clique has all of its pods, all are ready, and its status says so."""
        pods: dict[str, list[AnyObject]] = {}
        for pod in self.all(PODS):
            pods.setdefault(pod.labels.get(labels.CLIQUE, ""), []).append(pod)
        for clique in self.all(CLIQUES):
            own, count = pods.get(clique.name, []), clique.spec["replicas"]
            reported = (clique.status.get("replicas", 0), clique.status.get("readyReplicas", 0))
            if not (len(own) == count and all(map(is_ready, own)) and reported == (count, count)):
                return False
        return True

    # Waiting.

    async def until(self, condition: Callable[[], object], what: str = "", seconds: float = PATIENCE) -> None:
        """Wait until the condition is true, checked after every watch event; on timeout dump all objects."""
        if self.observer is not None:
            await self.observer.wait()
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._tick.clear()
                    await self._tick.wait()
                    self.check()
        except TimeoutError:
            raise AssertionError(
                f"not within {seconds:g} s: {what or 'the condition'}\n{self.dump()}"
            ) from None

    async def until_ready(self) -> None:
        await self.until(self.all_ready, "all objects ready and reported so")

    async def until_nothing_waits(self) -> None:
        """If all is ready, wait until no object says any more why pods wait."""
        kinds = [kind for kind in (SETS, GROUPS, CLIQUES, GANGS) if kind in self._caches]

        def outdated() -> bool:
            return self.all_ready() and any(found.waits_for for kind in kinds for found in self.all(kind))

        if kinds:
            await self.until(lambda: not outdated(), "no reason to wait while all is ready", REASON_GONE)

    async def checkpoint(
        self,
        name: str,
        pods: int | None = None,
        *,
        when: Callable[[], object] | None = None,
        compared: bool = True,
    ) -> None:
        """A checkpoint of a scenario: wait until all is ready, with so many pods, or until `when` is true.
        `compared=False`: the state here differs from run to run."""

        def ready() -> bool:
            return (pods is None or len(self.all(PODS)) == pods) and self.all_ready()

        if self.observer is None:
            await self.until(when or ready, name)
        else:
            await self.observer.checkpoint(name, when or ready, compared)

    async def stop_comparing_deletes(self) -> None:
        """From here on deletes are not compared: a set, replica or clique is about to be deleted, and it
        depends on timing whether the operator or the garbage collector deletes its pods."""
        if self.observer is not None:
            await self.observer.stop_comparing_deletes()

    async def until_snapshot(self, before: StateSnapshot, seconds: float = PATIENCE) -> None:
        """Wait until a snapshot of the namespace equals this one."""
        try:
            await self.until(lambda: take_snapshot(self) == before, "the same state as before", seconds)
        except AssertionError as problem:
            raise AssertionError(f"{differences(before, take_snapshot(self))}\n{problem}") from None

    def always(self, rule: Callable[[], None]) -> None:
        """Add an invariant, a function with an assertion: it must hold after each watch event from now on."""
        self._rules.append(rule)

    def check(self) -> None:
        """Raise if an invariant was violated or an operator has ended."""
        if self._broken:
            raise self._broken[0]
        for operator in self.operators:
            operator.check()

    def touch(self) -> None:
        """Check the conditions again, after a change that is no watch event."""
        self._tick.set()

    def _changed(self, resource: Resource, _old: AnyObject | None, _new: AnyObject | None) -> None:
        self.changes[resource] += 1
        for rule in self._rules:
            try:
                rule()
            except AssertionError as broken:
                self._broken.append(broken)
        self._tick.set()

    # Writing. Replies are applied to the caches at once: a test must not see the state before its own write.

    async def create(self, resource: Resource, body: dict[str, Any]) -> AnyObject:
        created = await self.client.create(resource, body, namespace=self.namespace, as_type=AnyObject)
        return self._apply_reply(resource, created)

    async def patch(
        self, resource: Resource, name: str, body: Any, *, kind: PatchKind = MERGE, subresource: str = ""
    ) -> AnyObject:
        patched = await self.client.patch(
            resource,
            name,
            body,
            namespace=self.namespace,
            kind=kind,
            subresource=subresource,
            as_type=AnyObject,
        )
        return self._apply_reply(resource, patched)

    async def scale(self, resource: Resource, name: str, replicas: int) -> None:
        """Scale through the scale subresource, as autoscalers and `kubectl scale` do."""
        await self.client.set_scale(resource, name, replicas, namespace=self.namespace)
        self._apply_reply(
            resource, await self.client.get(resource, name, namespace=self.namespace, as_type=AnyObject)
        )

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        uid = found.uid if (found := self.find(resource, name)) else ""
        reply = await self.client.delete(
            resource, name, namespace=self.namespace, as_type=AnyObject, **options
        )
        self._caches[resource].apply_delete_reply(self.namespace, name, uid, reply)

    def _apply_reply(self, resource: Resource, found: AnyObject) -> AnyObject:
        if resource in self._caches:
            self._caches[resource].apply_reply(found)
        return found

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    # Reporting.

    def dump(self) -> str:
        """All objects and the last calls of the operators, as text for a failed assertion."""
        lines = [f"namespace {self.namespace}"]
        for resource, cache in self._caches.items():
            lines += [describe(resource, found) for found in sorted(cache, key=lambda one: one.name)]
        for operator in self.operators:
            lines += operator.dump()
        return "\n".join(lines)


@asynccontextmanager
async def watching(client: Client, config: Config, namespace: str) -> AsyncIterator[World]:
    """The namespace, watched until the block is left, and emptied then."""
    world = World(client, config, namespace)
    try:
        await world.watch(SETS, *PARTS)
        async with one_runnable_pod_an_index(client, namespace, PATIENCE):
            yield world
            world.check()
    finally:
        world.operators.clear()
        await clear(world)
        await world.close()
