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

from grove.api.naming import labels
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler, PartialObjectMetadata
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import Cache, Handler, HasMetadata
from grove.kube.client.undecodable import Undecodable
from grove.operator.caches.registry import BY_TEMPLATE, BY_TOPOLOGY, Caches, owning_topology
from grove.operator.engine.message_backoff import MessageBackoff
from grove.operator.keys import Key, ReplicaKey, SetKey, TopologyKey, replica_of, set_of
from grove.operator.watches.enqueue_slices import SlicedEnqueuer, replicas
from grove.operator.watches.object_changes import changed, spec_revision, metadata_changed
from grove.plan.desired.shared_claims import has_shared_claims
from grove.schedulers.backend import SchedulerObject

_POD_DELAY = 0.1
_BATCH_DELAY = 0.5
_DELAY_PER_KEY = 0.02  # for each key that waits for its turn
_MAX_BUSY_DELAY = 8.0


class HasStatus(HasMetadata, Protocol):
    """An object that tells how it fares."""

    @property
    def status(self) -> object:
        """Its status."""
        ...


class Enqueue(Protocol):
    """Has a key looked at, now or at a moment of the loop's clock."""

    def __call__(self, key: Key, at: float = ..., /) -> None:
        """Wake the key."""
        ...


def busy_delay(waiting: int) -> float:
    """For how long a replica that is on its way may be left alone while so many keys wait for their turn: it
    gets its nodes and becomes ready meanwhile, and one look at all of that is enough."""
    return min(waiting * _DELAY_PER_KEY, _MAX_BUSY_DELAY)


def register_handlers(
    caches: Caches,
    enqueue: Enqueue,
    *,
    topologies: bool = False,
    busy_delay: Callable[[], float] = lambda: 0.0,
) -> None:
    """From now on, changes wake keys; what is there already is news to whoever begins now. `busy_delay` says for
    how long what is on its way may be left alone now."""
    handlers = _WorkloadEventHandlers(caches, enqueue, busy_delay)
    caches.sizes.on_limit_crossed(handlers.on_limit_crossed)
    replay_and_subscribe(caches.sets, handlers.on_set)
    for replica_object in (caches.groups, caches.cliques, caches.gangs):
        replay_and_subscribe(replica_object, handlers.on_replica_object)
    for reporting in (caches.sets, caches.groups, caches.cliques, caches.gangs):
        reporting.subscribe(partial(handlers.on_status, reporting))
    for rbac_object in caches.rbac_objects:
        replay_and_subscribe(rbac_object, handlers.on_rbac_object)
    replay_and_subscribe(caches.pods, handlers.on_pod)
    replay_and_subscribe(
        caches.services, handlers.on_any
    )  # its generation does not count changes of the spec
    replay_and_subscribe(caches.autoscalers, handlers.on_autoscaler)
    replay_and_subscribe(caches.claims, handlers.on_claim)
    replay_and_subscribe(caches.claim_templates, handlers.on_template)
    caches.claim_templates.on_undecodable(handlers.on_undecodable_template)
    for seen in (caches.claims, caches.claim_templates):
        seen.on_synced_or_absent(handlers.on_claim_kind)
    for named in (caches.topologies, caches.topology_bindings):
        replay_and_subscribe(named, handlers.on_topology)
        if topologies:
            replay_and_subscribe(named, handlers.on_own_topology)
            named.subscribe(partial(handlers.on_status, named))
    for scheduler_topologies in caches.scheduler_topologies.values():
        replay_and_subscribe(scheduler_topologies, handlers.on_scheduler_topology)
        scheduler_topologies.on_synced_or_absent(handlers.on_scheduler_topology_kind)
    for objects in caches.scheduler_objects.values():
        replay_and_subscribe(objects, handlers.on_scheduler_object)
        objects.on_synced_or_absent(handlers.on_scheduler_kind)
    for definition in caches.inspected_crds.values():
        definition.subscribe(lambda *_: handlers.on_scheduler_kind())


def replay_and_subscribe(cache: Cache[Any], handler: Handler[Any]) -> None:
    """Tell of what is there, and from now on of every change."""
    for found in cache:
        handler(None, found)
    cache.subscribe(handler)


class _WorkloadEventHandlers:
    def __init__(self, caches: Caches, enqueue: Enqueue, busy_delay: Callable[[], float]) -> None:
        self._caches, self._enqueue, self._busy_delay = caches, enqueue, busy_delay
        self._slices = SlicedEnqueuer(enqueue)
        self._backoff: MessageBackoff[ReplicaKey] = MessageBackoff()

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """All of its replicas, those that are too many included, if more than its status has changed; of the
        status it is the replica whose turn it is to be updated that counts."""
        if old is not None and new is not None and not changed(old, new):
            for index in {index for index, _ in _updating_replicas(old) ^ _updating_replicas(new)}:
                self._enqueue(ReplicaKey(new.metadata.namespace, new.metadata.name, index))
            return
        found = new or old
        assert found is not None
        self._enqueue(_key_of(found))
        self._enqueue_replicas(_key_of(found), new)

    def on_limit_crossed(self, key: SetKey) -> None:
        """A set that has crossed the limit on its pods: it reports that, and its replicas act on it."""
        if (workload := self._caches.sets.get(key.namespace, key.name)) is not None:
            self._enqueue_set_and_replicas(workload)

    def on_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The sets that mean it, all of their replicas, if its levels may have changed."""
        if old is not None and new is not None and spec_revision(old) == spec_revision(new):
            return
        found = new or old
        assert found is not None
        for workload in self._caches.sets.by_index(BY_TOPOLOGY, found.metadata.name):
            self._enqueue_set_and_replicas(workload)

    def on_own_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The topology itself, and what schedulers have of it."""
        found = new or old
        assert found is not None
        if old is None or new is None or spec_revision(old) != spec_revision(new):
            self._enqueue(TopologyKey(found.metadata.name))

    def on_scheduler_topology(self, old: SchedulerObject | None, new: SchedulerObject | None) -> None:
        """A scheduler's topology: of ours that it is made for, and those that refer to it."""
        found = new or old
        assert found is not None
        if owner := owning_topology(found):
            self._enqueue(TopologyKey(owner))
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            named = {topology.metadata.name, *(name for _, name in topology.spec.references)}
            if found.metadata.name in named:
                self._enqueue(TopologyKey(topology.metadata.name))

    def on_scheduler_topology_kind(self) -> None:
        """All topologies: a scheduler's kind has come, or gone."""
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            self._enqueue(TopologyKey(topology.metadata.name))

    def on_scheduler_kind(self) -> None:
        """Everybody: a scheduler's kind has come, or gone, and its users wait."""
        for workload in self._caches.sets:
            self._enqueue_replicas(_key_of(workload), workload)

    def on_claim(self, old: PartialObjectMetadata | None, new: PartialObjectMetadata | None) -> None:
        """The replica that a claim belongs to. What all replicas share the set makes, and they wait for."""
        if old is not None and new is not None and not changed(old, new):
            return
        for found in (old, new):
            if found is None or (key := set_of(found.metadata)) is None:
                continue
            if labels.CLAIM_SCOPE_LABELS.isdisjoint(found.metadata.labels):
                self._enqueue(key)
                if old is None:
                    self._enqueue_replicas(key, self._caches.sets.get(key.namespace, key.name))
            elif holder := self._caches.claim_owner(found):
                self.on_any(holder, None)

    def on_template(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The sets that refer to it: they may wait for it, or for the annotation that lets them use it."""
        if new is None or (old is not None and not changed(old, new)):
            return
        place = (new.metadata.namespace, new.metadata.name)
        for workload in self._caches.sets.by_index(BY_TEMPLATE, place):
            self._enqueue_set_and_replicas(workload)

    def on_undecodable_template(self, found: Undecodable) -> None:
        """The sets that refer to it, which report it."""
        for workload in self._caches.sets.by_index(BY_TEMPLATE, found.key):
            self._enqueue_set_and_replicas(workload)

    def on_claim_kind(self) -> None:
        """Everybody who shares claims: they can be seen now, or not any more."""
        for workload in self._caches.sets:
            if has_shared_claims(workload.spec.template):
                self._enqueue_set_and_replicas(workload)

    def _enqueue_set_and_replicas(self, workload: PodCliqueSet) -> None:
        self._enqueue(_key_of(workload))
        self._enqueue_replicas(_key_of(workload), workload)

    def on_rbac_object(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The set, which mends it; what its replicas wait for is that it comes."""
        for found in (old, new):
            if found is not None and (key := set_of(found.metadata)):
                self._enqueue(key)
                if old is None:
                    self._enqueue_replicas(key, self._caches.sets.get(key.namespace, key.name))

    def _enqueue_replicas(self, key: SetKey, workload: PodCliqueSet | None) -> None:
        self._slices.start(key, partial(replicas, self._caches, key, workload))

    def on_replica_object(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        if old is None or new is None or changed(old, new):
            self.on_any(old, new)

    def on_status(self, cache: Cache[Any], old: HasStatus | None, new: HasStatus | None) -> None:
        """Statuses are ours, and what we write we know from the reply. One that the watch tells first was
        written by somebody else, such as a leader of yesterday: it is looked at, in its turn."""
        if old is None or new is None or cache.applying_reply or old.status == new.status:
            return
        if (key := _key_of_status(new)) is not None:
            self._enqueue(key, asyncio.get_running_loop().time() + _BATCH_DELAY)

    def on_scheduler_object(self, old: SchedulerObject | None, new: SchedulerObject | None) -> None:
        """What a scheduler was told, at once; what it says to it, with patience: it may never be silent. Of
        Volcano's kind the generation counts changes of the status, too."""
        if old is None or new is None or old.spec != new.spec or metadata_changed(old, new):
            self.on_any(old, new)
        elif old.reported_status != new.reported_status and (key := replica_of(new.metadata)) is not None:
            now = asyncio.get_running_loop().time()
            if (due := self._backoff.due_at(key, now)) <= now:
                self._backoff.record(key, now)
            self._enqueue(key, due)
        if new is None and old is not None and (key := replica_of(old.metadata)) is not None:
            self._backoff.forget(key)

    def on_autoscaler(self, old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None) -> None:
        """Its status tells what it measures, every few seconds; nobody counts the changes of its spec."""
        if old is None or new is None or changed(old, new) or old.spec != new.spec:
            self.on_any(old, new)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """As any other if it comes or goes. Else it can wait: its node, its gates, its status, and the labels
        that the server gives it with its node."""
        keys = {key for found in (old, new) if found is not None and (key := replica_of(found.metadata))}
        if old is not None and any(map(self._is_terminating, keys)):
            pause = _BATCH_DELAY  # its set has told it to go, and waits for the last of many
        elif old and new and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp:
            pause = _POD_DELAY + self._busy_delay()
        else:
            self.on_any(old, new)
            return
        moment = asyncio.get_running_loop().time() + pause
        for key in keys:
            self._enqueue(key, moment)

    def _is_terminating(self, key: ReplicaKey) -> bool:
        workload = self._caches.sets.get(key.namespace, key.set_name)
        if workload is None:
            return False
        return workload.metadata.deletion_timestamp is not None or key.replica >= workload.spec.replicas

    def on_any(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """At once, but that something came can wait: it was made by us, and more is on its way."""
        pause = self._busy_delay() if old is None else 0.0
        moment = (asyncio.get_running_loop().time() + pause,) if pause else ()
        for found in (old, new):
            if found is not None and (key := replica_of(found.metadata)):
                self._enqueue(key, *moment)


def _key_of_status(found: HasMetadata) -> Key | None:
    """Whose work the status of an object comes from; None if it does not say where it belongs."""
    if isinstance(found, PodCliqueSet):
        return _key_of(found)
    if isinstance(found, ClusterTopology | ClusterTopologyBinding):
        return TopologyKey(found.metadata.name)
    return replica_of(found.metadata)


def _key_of(workload: PodCliqueSet) -> SetKey:
    return SetKey(workload.metadata.namespace, workload.metadata.name)


def _updating_replicas(found: PodCliqueSet) -> set[tuple[int, str]]:
    """Whose turn it is, and for which template."""
    progress = found.status.update_progress
    entries = progress.currently_updating if progress else ()
    return {(entry.replica_index, found.status.current_generation_hash) for entry in entries}
