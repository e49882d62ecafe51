"""Which change wakes which key, and how soon.

A change of status alone wakes nobody but those whose pods it is about, and those a moment later: the pods of
a replica get their nodes and become ready one after another, and one look at all of them is enough. Statuses
that we write are written by nobody else; one that changes behind our back is set right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from grove.api import labels
from grove.api.cluster import Bare, HorizontalPodAutoscaler
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.api.topology import ClusterTopology, ClusterTopologyBinding
from grove.kube.cache import Cache, Handler, HasMetadata
from grove.kube.undecodable import Undecodable
from grove.operator.caches import BY_TEMPLATE, BY_TOPOLOGY, Caches, owned_topology
from grove.operator.changes import changed, edition, remarked
from grove.operator.keys import Key, ReplicaKey, SetKey, TopologyKey, replica_of, set_of
from grove.operator.patience import Patience
from grove.operator.slices import Slices, replicas
from grove.plan.sharing import shares
from grove.schedulers.backend import Foreign

_MOMENT = 0.1
_TURN = 0.5
_LEISURE = 0.02  # for each key that waits for its turn
_MOST_LEISURE = 8.0


class HasStatus(HasMetadata, Protocol):
    """An object that tells how it fares."""

    @property
    def status(self) -> object:
        """Its status."""
        ...


class Wake(Protocol):
    """Has a key looked at, now or at a moment of the loop's clock."""

    def __call__(self, key: Key, at: float = ..., /) -> None:
        """Wake the key."""
        ...


def leisure(waiting: int) -> float:
    """For how long a replica that is on its way may be left alone while so many keys wait for their turn: it
    gets its nodes and becomes ready meanwhile, and one look at all of that is enough."""
    return min(waiting * _LEISURE, _MOST_LEISURE)


def wire(
    caches: Caches, wake: Wake, *, topologies: bool = False, leisure: Callable[[], float] = lambda: 0.0
) -> None:
    """From now on, changes wake keys; what is there already is news to whoever begins now. `leisure` says for
    how long what is on its way may be left alone now."""
    waker = _Waker(caches, wake, leisure)
    caches.sizes.on_crossing(waker.on_crossing)
    follow(caches.sets, waker.on_set)
    for part in (caches.groups, caches.cliques, caches.gangs):
        follow(part, waker.on_part)
    for reporting in (caches.sets, caches.groups, caches.cliques, caches.gangs):
        reporting.subscribe(partial(waker.on_status, reporting))
    for grant in caches.grants:
        follow(grant, waker.on_grant)
    follow(caches.pods, waker.on_pod)
    follow(caches.services, waker.on_any)  # its generation does not count changes of the spec
    follow(caches.autoscalers, waker.on_autoscaler)
    follow(caches.claims, waker.on_claim)
    follow(caches.claim_templates, waker.on_template)
    caches.claim_templates.on_undecodable(waker.on_undecodable_template)
    for seen in (caches.claims, caches.claim_templates):
        seen.on_settled(waker.on_sight_of_claims)
    for named in (caches.topologies, caches.topology_bindings):
        follow(named, waker.on_topology)
        if topologies:
            follow(named, waker.on_counterpart_of)
            named.subscribe(partial(waker.on_status, named))
    for mirrored in caches.mirrored.values():
        follow(mirrored, waker.on_counterpart)
        mirrored.on_settled(waker.on_counterparts)
    for told in caches.told.values():
        follow(told, waker.on_told)
        told.on_settled(waker.on_sight)
    for definition in caches.definitions.values():
        definition.subscribe(lambda *_: waker.on_sight())


def follow(cache: Cache[Any], tell: Handler[Any]) -> None:
    """Tell of what is there, and from now on of every change."""
    for found in cache:
        tell(None, found)
    cache.subscribe(tell)


class _Waker:
    def __init__(self, caches: Caches, wake: Wake, leisure: Callable[[], float]) -> None:
        self._caches, self._wake, self._leisure = caches, wake, leisure
        self._slices = Slices(wake)
        self._patience: Patience[ReplicaKey] = Patience()

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """All of its replicas, those that are too many included, if more than its status has changed; of the
        status it is the replica whose turn it is to be updated that counts."""
        if old is not None and new is not None and not changed(old, new):
            for index in {index for index, _ in _turns(old) ^ _turns(new)}:
                self._wake(ReplicaKey(new.metadata.namespace, new.metadata.name, index))
            return
        found = new or old
        assert found is not None
        self._wake(_key_of(found))
        self._wake_replicas(_key_of(found), new)

    def on_crossing(self, key: SetKey) -> None:
        """A set that has crossed the limit on its pods: it reports that, and its replicas act on it."""
        if (workload := self._caches.sets.get(key.namespace, key.name)) is not None:
            self._wake_all(workload)

    def on_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The sets that mean it, all of their replicas, if its levels may have changed."""
        if old is not None and new is not None and edition(old) == edition(new):
            return
        found = new or old
        assert found is not None
        for workload in self._caches.sets.by_index(BY_TOPOLOGY, found.metadata.name):
            self._wake_all(workload)

    def on_counterpart_of(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The topology itself, and what schedulers have of it."""
        found = new or old
        assert found is not None
        if old is None or new is None or edition(old) != edition(new):
            self._wake(TopologyKey(found.metadata.name))

    def on_counterpart(self, old: Foreign | None, new: Foreign | None) -> None:
        """A scheduler's topology: of ours that it is made for, and those that refer to it."""
        found = new or old
        assert found is not None
        if owner := owned_topology(found):
            self._wake(TopologyKey(owner))
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            named = {topology.metadata.name, *(name for _, name in topology.spec.references)}
            if found.metadata.name in named:
                self._wake(TopologyKey(topology.metadata.name))

    def on_counterparts(self) -> None:
        """All topologies: a scheduler's kind has come, or gone."""
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            self._wake(TopologyKey(topology.metadata.name))

    def on_sight(self) -> None:
        """Everybody: a scheduler's kind has come, or gone, and its users wait."""
        for workload in self._caches.sets:
            self._wake_replicas(_key_of(workload), workload)

    def on_claim(self, old: Bare | None, new: Bare | None) -> None:
        """The replica that a claim belongs to. What all replicas share the set makes, and they wait for."""
        if old is not None and new is not None and not changed(old, new):
            return
        for found in (old, new):
            if found is None or (key := set_of(found.metadata)) is None:
                continue
            if labels.CLAIM_PLACES.isdisjoint(found.metadata.labels):
                self._wake(key)
                if old is None:
                    self._wake_replicas(key, self._caches.sets.get(key.namespace, key.name))
            elif holder := self._caches.holder(found):
                self.on_any(holder, None)

    def on_template(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The sets that refer to it: they may wait for it, or for the annotation that lets them use it."""
        if new is None or (old is not None and not changed(old, new)):
            return
        place = (new.metadata.namespace, new.metadata.name)
        for workload in self._caches.sets.by_index(BY_TEMPLATE, place):
            self._wake_all(workload)

    def on_undecodable_template(self, found: Undecodable) -> None:
        """The sets that refer to it, which report it."""
        for workload in self._caches.sets.by_index(BY_TEMPLATE, found.key):
            self._wake_all(workload)

    def on_sight_of_claims(self) -> None:
        """Everybody who shares claims: they can be seen now, or not any more."""
        for workload in self._caches.sets:
            if shares(workload.spec.template):
                self._wake_all(workload)

    def _wake_all(self, workload: PodCliqueSet) -> None:
        self._wake(_key_of(workload))
        self._wake_replicas(_key_of(workload), workload)

    def on_grant(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The set, which mends it; what its replicas wait for is that it comes."""
        for found in (old, new):
            if found is not None and (key := set_of(found.metadata)):
                self._wake(key)
                if old is None:
                    self._wake_replicas(key, self._caches.sets.get(key.namespace, key.name))

    def _wake_replicas(self, key: SetKey, workload: PodCliqueSet | None) -> None:
        self._slices.feed(key, partial(replicas, self._caches, key, workload))

    def on_part(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        if old is None or new is None or changed(old, new):
            self.on_any(old, new)

    def on_status(self, cache: Cache[Any], old: HasStatus | None, new: HasStatus | None) -> None:
        """Statuses are ours, and what we write we know from the reply. One that the watch tells first was
        written by somebody else, such as a leader of yesterday: it is looked at, in its turn."""
        if old is None or new is None or cache.replying or old.status == new.status:
            return
        if (key := _reports_on(new)) is not None:
            self._wake(key, asyncio.get_running_loop().time() + _TURN)

    def on_told(self, old: Foreign | None, new: Foreign | None) -> None:
        """What a scheduler was told, at once; what it says to it, with patience: it may never be silent. Of
        Volcano's kind the generation counts changes of the status, too."""
        if old is None or new is None or old.spec != new.spec or remarked(old, new):
            self.on_any(old, new)
        elif old.said != new.said and (key := replica_of(new.metadata)) is not None:
            now = asyncio.get_running_loop().time()
            if (due := self._patience.when(key, now)) <= now:
                self._patience.listened(key, now)
            self._wake(key, due)
        if new is None and old is not None and (key := replica_of(old.metadata)) is not None:
            self._patience.forget(key)

    def on_autoscaler(self, old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None) -> None:
        """Its status tells what it measures, every few seconds; nobody counts the changes of its spec."""
        if old is None or new is None or changed(old, new) or old.spec != new.spec:
            self.on_any(old, new)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """As any other if it comes or goes. Else it can wait: its node, its gates, its status, and the labels
        that the server gives it with its node."""
        keys = {key for found in (old, new) if found is not None and (key := replica_of(found.metadata))}
        if old is not None and any(map(self._leaves, keys)):
            pause = _TURN  # its set has told it to go, and waits for the last of many
        elif old and new and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp:
            pause = _MOMENT + self._leisure()
        else:
            self.on_any(old, new)
            return
        moment = asyncio.get_running_loop().time() + pause
        for key in keys:
            self._wake(key, moment)

    def _leaves(self, key: ReplicaKey) -> bool:
        workload = self._caches.sets.get(key.namespace, key.set_name)
        if workload is None:
            return False
        return workload.metadata.deletion_timestamp is not None or key.replica >= workload.spec.replicas

    def on_any(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """At once, but that something came can wait: it was made by us, and more is on its way."""
        pause = self._leisure() if old is None else 0.0
        moment = (asyncio.get_running_loop().time() + pause,) if pause else ()
        for found in (old, new):
            if found is not None and (key := replica_of(found.metadata)):
                self._wake(key, *moment)


def _reports_on(found: HasMetadata) -> Key | None:
    """Whose work the status of an object comes from; None if it does not say where it belongs."""
    if isinstance(found, PodCliqueSet):
        return _key_of(found)
    if isinstance(found, ClusterTopology | ClusterTopologyBinding):
        return TopologyKey(found.metadata.name)
    return replica_of(found.metadata)


def _key_of(workload: PodCliqueSet) -> SetKey:
    return SetKey(workload.metadata.namespace, workload.metadata.name)


def _turns(found: PodCliqueSet) -> set[tuple[int, str]]:
    """Whose turn it is, and for which template."""
    progress = found.status.update_progress
    entries = progress.currently_updating if progress else ()
    return {(entry.replica_index, found.status.current_generation_hash) for entry in entries}
