"""Topologies and what schedulers have of them: one key for each name, worked on by the leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import structlog

from grove.api.conditions import ConditionType
from grove.api.events import EventReason, Reporter
from grove.api.intents import DeleteCollection, Intent, ObjectRef, Occurrence
from grove.kube.keyed import KeyedExecutor
from grove.kube.outcome import State
from grove.operator.caches import Caches, owned_topology
from grove.operator.environs import Environs
from grove.operator.keys import Key, TopologyKey
from grove.operator.publish import intents
from grove.plan.facts import find
from grove.plan.model import Draft, Plan
from grove.plan.topologies import Counterpart, plan_shadowed, plan_topology
from grove.schedulers.backend import AnyTopology, Foreign, TopologyAware
from grove.schedulers.registry import Backends

log = structlog.get_logger("grove.operator")


class Counterparts:
    """Brings what schedulers have of topologies in step with ours."""

    def __init__(
        self,
        caches: Caches,
        executor: KeyedExecutor[Key],
        in_use: Backends | None,
        tell: Callable[[Occurrence], None],
        environs: Environs,
    ) -> None:
        self._caches, self._executor, self._tell = caches, executor, tell
        self._environs = environs
        self._aware = in_use.topology_aware if in_use else ()
        self._enabled = frozenset(in_use.by_name) if in_use else frozenset()
        self._errors: dict[TopologyKey, dict[str, str]] = {}
        """What could not be written the last time, by API."""

    async def bring_in_order(self, key: TopologyKey, now: float) -> tuple[bool, bool]:
        """One pass over one name. Says whether it went well, and whether another pass is due."""
        topology = self._topology(key)
        if topology is None:
            self._errors.pop(key, None)
            return await self._execute(key, tuple(self._left_behind(key))), False
        plan = self._plan(key, topology, now)
        well = await self._execute(key, plan.intents)
        if plan.intents and well:
            return True, True  # how it stands now, the next pass tells
        if not well:
            plan = self._plan(key, topology, now)  # with the error in it
        drafts = [*plan.drafts, *self._shadow(key, topology, now)]
        outcome = await self._executor.execute(key, intents(drafts))
        for draft in drafts if outcome.done else ():
            self._tell_news(topology, draft)
        return well and not outcome.failed, outcome.outdated

    def _topology(self, key: TopologyKey) -> AnyTopology | None:
        return self._caches.topologies.get("", key.name) or self._caches.topology_bindings.get("", key.name)

    def _plan(self, key: TopologyKey, topology: AnyTopology, now: float) -> Plan:
        references, errors = dict(topology.spec.references), self._errors.get(key, {})
        counterparts = [
            self._counterpart(
                backend,
                topology,
                references.get(backend.name, ""),
                errors.get(backend.topology_kind.api_version, ""),
            )
            for backend in self._aware
        ]
        return plan_topology(topology, counterparts, self._enabled, now, self._environs.of(topology))

    def _counterpart(
        self, backend: TopologyAware, topology: AnyTopology, reference: str, error: str
    ) -> Counterpart:
        cache = self._caches.mirrored[backend.topology_kind]
        try:
            own_name = backend.topology_name(topology)
        except Exception:  # of somebody else: the plan meets it again, and tells
            own_name = topology.metadata.name
        own = cache.get("", own_name)
        if not reference:
            return Counterpart(backend, cache.synced.is_set(), "", own, error=error)
        left = own if own and reference != own_name and _controlled(own, topology) else None
        found = cache.get("", reference)
        return Counterpart(backend, cache.synced.is_set(), reference, found, left, error)

    def _left_behind(self, key: TopologyKey) -> Iterator[Intent]:
        """What we managed for a topology that is gone, also if it went while nobody looked."""
        for backend in self._aware:
            found = self._caches.mirrored[backend.topology_kind].get("", key.name)
            if found is None or not owned_topology(found) or found.metadata.deletion_timestamp:
                continue
            try:
                yield from backend.on_topology_delete(key.name, found)
            except Exception as problem:  # of somebody else: the others' go all the same
                why = f"{type(problem).__name__}: {problem}"
                log.warning("left behind", key=f"{backend.name} {key.name}", action="go on", reason=why)

    async def _execute(self, key: TopologyKey, writes: tuple[Intent, ...]) -> bool:
        self._errors.pop(key, None)
        if not writes:
            return True
        outcome = await self._executor.execute(key, writes)
        for result in outcome.results:
            if result.state is State.FAILED and not isinstance(result.intent, DeleteCollection):
                why = str(result.error)
                self._errors.setdefault(key, {})[result.intent.target.api_version] = why
                log.warning("topology not in step", key=str(key), action="retry", reason=why)
        return not outcome.failed and not outcome.outdated

    def _shadow(self, key: TopologyKey, used: AnyTopology, now: float) -> tuple[Draft, ...]:
        binding = self._caches.topology_bindings.get("", key.name)
        return plan_shadowed(binding, now).drafts if binding is not None and binding is not used else ()

    def _tell_news(self, topology: AnyTopology, draft: Draft) -> None:
        """A change from or to being in step."""
        drift = ConditionType.SCHEDULER_TOPOLOGY_DRIFT
        before, after = find(draft.current.conditions, drift), find(draft.desired.conditions, drift)
        if after is None or after.status == "Unknown" or (before and before.status == after.status):
            return
        bad = after.status == "True"
        kind, meta = type(topology).KIND, topology.metadata
        self._tell(
            Occurrence(
                ObjectRef(kind.api_version, kind.name, meta.name, uid=meta.uid),
                (EventReason.TOPOLOGY_DRIFT if bad else EventReason.TOPOLOGY_IN_SYNC).value,
                after.message,
                action="Sync",
                warning=bad,
                reporter=Reporter.TOPOLOGY.value,
            )
        )


def _controlled(found: Foreign, topology: AnyTopology) -> bool:
    owners = found.metadata.owner_references
    return any(owner.controller and owner.uid == topology.metadata.uid for owner in owners)
