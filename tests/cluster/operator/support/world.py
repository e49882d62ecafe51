"""A world to try operators in: a namespace on the real control plane, seen through watches of its own.

The test acts on the cluster as its administrator and waits for events; what an operator believes is nobody's
evidence here.
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
    answers,
    updating,
)
from tests.cluster.operator.support.pod_history import one_runnable_pod_an_index
from tests.cluster.operator.support.state_snapshot import StateSnapshot, differences, take_snapshot

PATIENCE = 120.0
GARBAGE = 300.0
"""Seconds for Kubernetes' garbage collector to learn of a new kind: half a minute or a whole one, and on a
busy machine it begins anew if it is not done by then."""


class Working(Protocol):
    """An operator at work in the world."""

    def check(self) -> None:
        """Complain if it died."""

    def dump(self) -> list[str]:
        """What became of it lately, for people."""


class ScenarioObserver(Protocol):
    """Knows what is to be seen and done where a scenario rests (see `telling`)."""

    async def wait(self) -> None:
        """Something is about to be waited for."""

    async def parent_goes(self) -> None:
        """A set, replica or clique is about to go."""

    async def rest(self, name: str, when: Callable[[], object], compared: bool) -> None:
        """The scenario rests here."""


class World:
    """A namespace: what is in it, and what a user may do to it."""

    def __init__(self, client: Client, config: Config, namespace: str) -> None:
        self.client, self.config, self.namespace = client, config, namespace
        self._caches: dict[Resource, Cache[AnyObject]] = {}
        self._tick = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._rules: list[Callable[[], None]] = []
        self._broken: list[AssertionError] = []
        self.changes: Counter[Resource] = Counter()
        """How often something has happened to an object of a kind."""
        self.operators: list[Working] = []
        self.observer: ScenarioObserver | None = None

    # What is there.

    async def watch(self, *resources: Resource) -> None:
        """Keep an eye on these from now on."""
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
        """Whether this very object is not there any more; another one may have its name."""
        found = self.find(resource, seen.name)
        return found is None or found.uid != seen.uid

    def pods(self, **wanted: str) -> list[AnyObject]:
        """The pods that are there to stay."""
        return [pod for pod in self.all(PODS, **wanted) if not pod.terminating]

    def whole(self) -> bool:
        """Everything that was asked for is there, ready and told so, and nothing is on its way out."""
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
        """Every clique has its pods, all answering, and says so."""
        pods: dict[str, list[AnyObject]] = {}
        for pod in self.all(PODS):
            pods.setdefault(pod.labels.get(labels.CLIQUE, ""), []).append(pod)
        for clique in self.all(CLIQUES):
            own, count = pods.get(clique.name, []), clique.spec["replicas"]
            said = (clique.status.get("replicas", 0), clique.status.get("readyReplicas", 0))
            if not (len(own) == count and all(map(answers, own)) and said == (count, count)):
                return False
        return True

    # Waiting.

    async def until(self, condition: Callable[[], object], what: str = "", seconds: float = PATIENCE) -> None:
        """Wait for the event that makes the condition true; tell how things stand if it never comes."""
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
                f"not in {seconds:g} s: {what or 'what was waited for'}\n{self.dump()}"
            ) from None

    async def until_ready(self) -> None:
        await self.until(self.whole, "everything ready and told so")

    async def rest(
        self,
        name: str,
        pods: int | None = None,
        *,
        when: Callable[[], object] | None = None,
        compared: bool = True,
    ) -> None:
        """A scenario rests: all is ready, with so many pods; or what is to be is so. It is `compared` if it
        always looks the same."""

        def whole() -> bool:
            return (pods is None or len(self.all(PODS)) == pods) and self.whole()

        if self.observer is None:
            await self.until(when or whole, name)
        else:
            await self.observer.rest(name, when or whole, compared)

    async def parent_goes(self) -> None:
        """A set, replica or clique is about to go: from here on it is the moment's choice who deletes its
        pods and how, and deletes are not compared."""
        if self.observer is not None:
            await self.observer.parent_goes()

    async def until_like(self, before: StateSnapshot, seconds: float = PATIENCE) -> None:
        """Wait until the world looks as it did before."""
        try:
            await self.until(lambda: take_snapshot(self) == before, "the picture from before", seconds)
        except AssertionError as problem:
            raise AssertionError(f"{differences(before, take_snapshot(self))}\n{problem}") from None

    def always(self, rule: Callable[[], None]) -> None:
        """A rule, as an assertion, that must hold after every event from now on."""
        self._rules.append(rule)

    def check(self) -> None:
        """Complain about a rule that was broken and about an operator that died."""
        if self._broken:
            raise self._broken[0]
        for operator in self.operators:
            operator.check()

    def touch(self) -> None:
        """Something that is no event has changed: look again."""
        self._tick.set()

    def _changed(self, resource: Resource, _old: AnyObject | None, _new: AnyObject | None) -> None:
        self.changes[resource] += 1
        for rule in self._rules:
            try:
                rule()
            except AssertionError as broken:
                self._broken.append(broken)
        self._tick.set()

    # Doing. What the server answers is seen at once: a test must not wait on what was before its own deed.

    async def create(self, resource: Resource, body: dict[str, Any]) -> AnyObject:
        made = await self.client.create(resource, body, namespace=self.namespace, as_type=AnyObject)
        return self._saw(resource, made)

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
        return self._saw(resource, patched)

    async def scale(self, resource: Resource, name: str, replicas: int) -> None:
        """Through the scale subresource, as autoscalers and `kubectl scale` do."""
        await self.client.set_scale(resource, name, replicas, namespace=self.namespace)
        self._saw(
            resource, await self.client.get(resource, name, namespace=self.namespace, as_type=AnyObject)
        )

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        uid = found.uid if (found := self.find(resource, name)) else ""
        answer = await self.client.delete(
            resource, name, namespace=self.namespace, as_type=AnyObject, **options
        )
        self._caches[resource].apply_delete_reply(self.namespace, name, uid, answer)

    def _saw(self, resource: Resource, found: AnyObject) -> AnyObject:
        if resource in self._caches:
            self._caches[resource].apply_reply(found)
        return found

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    # Telling.

    def dump(self) -> str:
        """How things stand, for people."""
        lines = [f"namespace {self.namespace}"]
        for resource, cache in self._caches.items():
            lines += [_line(resource, found) for found in sorted(cache, key=lambda one: one.name)]
        for operator in self.operators:
            lines += operator.dump()
        return "\n".join(lines)


def _line(resource: Resource, found: AnyObject) -> str:
    interesting = {
        key: value
        for key, value in found.status.items()
        if key.lower().endswith(("replicas", "phase", "generation"))
    }
    words = [resource.kind, found.name, f"replicas={found.spec.get('replicas')}", str(interesting)]
    if found.reason:
        words = [resource.kind, str(found.regarding.get("name")), found.reason, found.note]
    if found.terminating:
        words.append(f"TERMINATING {found.metadata.finalizers}")
    if gates := found.spec.get("schedulingGates"):
        words.append(f"gates={[gate['name'] for gate in gates]}")
    errors = found.status.get("lastErrors") or ()
    words += [f"\n    {error['code']}: {error['description']}" for error in errors]
    return " ".join(words)


@asynccontextmanager
async def watching(client: Client, config: Config, namespace: str) -> AsyncIterator[World]:
    """The namespace as a world; emptied when it is left."""
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
