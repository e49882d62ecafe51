"""Event mapping for sets, replicas and topologies: which watch event enqueues which key, and when.

Status changes of pods enqueue their replica after a short delay: the pods of a replica get their nodes and
become ready one after another, and one pass over all of them is enough. Other status changes enqueue nothing,
except those that another writer made: the next pass writes our status again.
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
from grove.operator.caches.object_changes import changed, metadata_changed, spec_revision
from grove.operator.caches.registry import BY_TEMPLATE, BY_TOPOLOGY, Caches, owning_topology
from grove.operator.engine.message_backoff import MessageBackoff
from grove.operator.keys import Key, ReplicaKey, SetKey, TopologyKey, replica_of, set_of
from grove.operator.watches.enqueue_slices import SlicedEnqueuer, replicas
from grove.plan.desired.shared_claims import has_shared_claims
from grove.schedulers.backend import SchedulerObject

_POD_DELAY = 0.1
_BATCH_DELAY = 0.5
_DELAY_PER_KEY = 0.02  # seconds for each key that waits in the queue
_MAX_BUSY_DELAY = 8.0


class HasStatus(HasMetadata, Protocol):
    """An object with a status."""

    @property
    def status(self) -> object:
        """Its status."""
        ...


class Enqueue(Protocol):
    """Puts a key into the work queue, now or at a time of the loop's clock."""

    def __call__(self, key: Key, at: float = ..., /) -> None:
        """Enqueue the key."""
        ...


def busy_delay(waiting: int) -> float:
    """The delay for a replica that is starting while this many keys wait in the queue: meanwhile more of its
    pods get their nodes and become ready, and one pass handles all of that."""
    return min(waiting * _DELAY_PER_KEY, _MAX_BUSY_DELAY)


def register_handlers(
    caches: Caches,
    enqueue: Enqueue,
    *,
    topologies: bool = False,
    busy_delay: Callable[[], float] = lambda: 0.0,
) -> None:
    """Subscribe to the caches; existing objects are mapped at once. `busy_delay` returns the current delay
    for objects that are starting."""
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
    replay_and_subscribe(caches.services, handlers.on_any)  # their generation does not count spec changes
    replay_and_subscribe(caches.autoscalers, handlers.on_autoscaler)
    replay_and_subscribe(caches.claims, handlers.on_claim)
    replay_and_subscribe(caches.claim_templates, handlers.on_template)
    caches.claim_templates.on_undecodable(handlers.on_undecodable_template)
    for cache in (caches.claims, caches.claim_templates):
        cache.on_synced_or_absent(handlers.on_claim_kind)
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
    """Call the handler with each existing object, and from now on with every change."""
    for found in cache:
        handler(None, found)
    cache.subscribe(handler)


class _WorkloadEventHandlers:
    def __init__(self, caches: Caches, enqueue: Enqueue, busy_delay: Callable[[], float]) -> None:
        self._caches, self._enqueue, self._busy_delay = caches, enqueue, busy_delay
        self._slices = SlicedEnqueuer(enqueue)
        self._backoff: MessageBackoff[ReplicaKey] = MessageBackoff()

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """Enqueues the set and all of its replicas, surplus ones included, if spec or metadata changed; if
        only the status changed, the replicas whose rollout begins or ends."""
        if old is not None and new is not None and not changed(old, new):
            for index in {index for index, _ in _updating_replicas(old) ^ _updating_replicas(new)}:
                self._enqueue(ReplicaKey(new.metadata.namespace, new.metadata.name, index))
            return
        found = new or old
        assert found is not None
        self._enqueue(_key_of(found))
        self._enqueue_replicas(_key_of(found), new)

    def on_limit_crossed(self, key: SetKey) -> None:
        """A set crossed the limit on pods: enqueues it and its replicas, which report or apply that."""
        if (workload := self._caches.sets.get(key.namespace, key.name)) is not None:
            self._enqueue_set_and_replicas(workload)

    def on_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Enqueues the sets that refer to a topology, with all replicas, if its levels may have changed."""
        if old is not None and new is not None and spec_revision(old) == spec_revision(new):
            return
        found = new or old
        assert found is not None
        for workload in self._caches.sets.by_index(BY_TOPOLOGY, found.metadata.name):
            self._enqueue_set_and_replicas(workload)

    def on_own_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Enqueues the topology itself, whose pass writes the topology objects of schedulers."""
        found = new or old
        assert found is not None
        if old is None or new is None or spec_revision(old) != spec_revision(new):
            self._enqueue(TopologyKey(found.metadata.name))

    def on_scheduler_topology(self, old: SchedulerObject | None, new: SchedulerObject | None) -> None:
        """Enqueues the topology that owns a scheduler's topology object, and those that refer to it."""
        found = new or old
        assert found is not None
        if owner := owning_topology(found):
            self._enqueue(TopologyKey(owner))
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            named = {topology.metadata.name, *(name for _, name in topology.spec.references)}
            if found.metadata.name in named:
                self._enqueue(TopologyKey(topology.metadata.name))

    def on_scheduler_topology_kind(self) -> None:
        """A scheduler's topology kind appeared or disappeared: enqueues all topologies."""
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            self._enqueue(TopologyKey(topology.metadata.name))

    def on_scheduler_kind(self) -> None:
        """A scheduler's kind appeared or disappeared: enqueues all replicas, which may wait for it."""
        for workload in self._caches.sets:
            self._enqueue_replicas(_key_of(workload), workload)

    def on_claim(self, old: PartialObjectMetadata | None, new: PartialObjectMetadata | None) -> None:
        """Enqueues the replica of a claim. A claim that all replicas share is created by the set, and a new
        one enqueues all replicas, which wait for it."""
        if old is not None and new is not None and not changed(old, new):
            return
        for found in (old, new):
            if found is None or (key := set_of(found.metadata)) is None:
                continue
            if labels.CLAIM_SCOPE_LABELS.isdisjoint(found.metadata.labels):
                self._enqueue(key)
                if old is None:
                    self._enqueue_replicas(key, self._caches.sets.get(key.namespace, key.name))
            elif owner := self._caches.claim_owner(found):
                self.on_any(owner, None)

    def on_template(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Enqueues the sets that refer to a template: they may wait for it or for its annotation."""
        if new is None or (old is not None and not changed(old, new)):
            return
        template_key = (new.metadata.namespace, new.metadata.name)
        for workload in self._caches.sets.by_index(BY_TEMPLATE, template_key):
            self._enqueue_set_and_replicas(workload)

    def on_undecodable_template(self, found: Undecodable) -> None:
        """Enqueues the sets that refer to an undecodable template, which report it."""
        for workload in self._caches.sets.by_index(BY_TEMPLATE, found.key):
            self._enqueue_set_and_replicas(workload)

    def on_claim_kind(self) -> None:
        """The cache of claims or templates became synced or absent: enqueues all sets with shared claims."""
        for workload in self._caches.sets:
            if has_shared_claims(workload.spec.template):
                self._enqueue_set_and_replicas(workload)

    def _enqueue_set_and_replicas(self, workload: PodCliqueSet) -> None:
        self._enqueue(_key_of(workload))
        self._enqueue_replicas(_key_of(workload), workload)

    def on_rbac_object(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Enqueues the set, which repairs the object; a new one also enqueues replicas that wait for it."""
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
        """Only the operator writes statuses, and its own writes are known from their replies. A status change
        from the watch was made by another writer, such as a former leader: enqueues the key after a delay."""
        if old is None or new is None or cache.applying_reply or old.status == new.status:
            return
        if (key := _key_of_status(new)) is not None:
            self._enqueue(key, asyncio.get_running_loop().time() + _BATCH_DELAY)

    def on_scheduler_object(self, old: SchedulerObject | None, new: SchedulerObject | None) -> None:
        """Enqueues the replica: at once if spec or metadata changed, with back-off if only the status did,
        which may change all the time. The generation of Volcano's kind counts changes of the status, too."""
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
        """Enqueues the replica unless only the status changed: it is updated every few seconds with measured
        values. Its generation does not count changes of the spec."""
        if old is None or new is None or changed(old, new) or old.spec != new.spec:
            self.on_any(old, new)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Enqueues the replica: at once if the pod is created, deleted or begins to terminate; after a delay
        if its node, gates, status, or the labels that the API server adds with the node change."""
        keys = {key for found in (old, new) if found is not None and (key := replica_of(found.metadata))}
        if old is not None and any(map(self._is_terminating, keys)):
            pause = _BATCH_DELAY  # its set has deleted it, and waits for the last of many
        elif old and new and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp:
            pause = _POD_DELAY + self._busy_delay()
        else:
            self.on_any(old, new)
            return
        at = asyncio.get_running_loop().time() + pause
        for key in keys:
            self._enqueue(key, at)

    def _is_terminating(self, key: ReplicaKey) -> bool:
        workload = self._caches.sets.get(key.namespace, key.set_name)
        if workload is None:
            return False
        return workload.metadata.deletion_timestamp is not None or key.replica >= workload.spec.replicas

    def on_any(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Enqueues the replica of an object at once. A new object waits for the busy delay: the operator
        created it, and more objects follow."""
        pause = self._busy_delay() if old is None else 0.0
        at = (asyncio.get_running_loop().time() + pause,) if pause else ()
        for found in (old, new):
            if found is not None and (key := replica_of(found.metadata)):
                self._enqueue(key, *at)


def _key_of_status(found: HasMetadata) -> Key | None:
    """The key whose pass writes the status of an object; None if its labels name no replica."""
    if isinstance(found, PodCliqueSet):
        return _key_of(found)
    if isinstance(found, ClusterTopology | ClusterTopologyBinding):
        return TopologyKey(found.metadata.name)
    return replica_of(found.metadata)


def _key_of(workload: PodCliqueSet) -> SetKey:
    return SetKey(workload.metadata.namespace, workload.metadata.name)


def _updating_replicas(found: PodCliqueSet) -> set[tuple[int, str]]:
    """The indexes of the replicas in rollout, with the template hash."""
    progress = found.status.update_progress
    entries = progress.currently_updating if progress else ()
    return {(entry.replica_index, found.status.current_generation_hash) for entry in entries}
