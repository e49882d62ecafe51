"""The watches of sets and replicas.

Status changes of pods enqueue their replica. Other status changes enqueue nothing, except those that another
writer made: the next pass writes our status again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from grove import timing
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler, PartialObjectMetadata
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import HasMetadata
from grove.kube.client.undecodable import Undecodable
from grove.operator.caches.predicates import (
    changed_beyond_finalizers,
    exists_with_other_spec_or_metadata,
    metadata_changed,
    only_status_changed,
    spec_changed,
    spec_or_metadata_changed,
    status_changed_by_others,
)
from grove.operator.caches.registry import BY_PRIORITY_CLASS, BY_TEMPLATE, BY_TOPOLOGY, Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import ReplicaKey, SetKey, replica_of, set_of
from grove.operator.watches.delays import ReplicaDelays
from grove.operator.watches.enqueue_slices import FanOut, all_replicas
from grove.operator.watches.table import Watch
from grove.plan.desired.resource_sharing import has_shared_claims
from grove.schedulers.backend import SchedulerObject

Keys = Iterator[SetKey | ReplicaKey | FanOut]


def workload_watches(
    caches: Caches, states: KeyStates, start_delay: Callable[[ReplicaKey], float] = lambda _: 0.0
) -> tuple[Watch, ...]:
    """The watches of sets and replicas. `start_delay` returns the current delay for one that is starting."""
    find, delays = _WorkloadKeys(caches), ReplicaDelays(caches, states, start_delay)
    changed, starting = spec_or_metadata_changed, delays.of_object
    replica_objects = (caches.groups, caches.cliques, caches.gangs)
    topologies = (caches.topologies, caches.topology_bindings)
    claim_kinds = (caches.claims, caches.claim_templates)
    schedulers = caches.scheduler_objects.values()
    by_others = status_changed_by_others
    return (
        Watch(caches.sizes.on_limit_crossed, find.set_and_replicas),
        Watch(caches.sets, find.changed_set, changed, replay=True),
        Watch(caches.sets, replicas_in_rollout, only_status_changed),
        *(Watch(cache, replicas_named, changed, starting, replay=True) for cache in replica_objects),
        Watch(caches.sets, set_itself, by_others(caches.sets), timing.BATCH_DELAY),
        *(Watch(cache, replicas_named, by_others(cache), timing.BATCH_DELAY) for cache in replica_objects),
        *(Watch(cache, find.rbac_object, replay=True) for cache in caches.rbac_objects),
        Watch(caches.pods, replicas_named, delay=delays.of_pod, replay=True),
        # The generation of Services does not count changes of their spec.
        Watch(caches.services, replicas_named, delay=starting, replay=True),
        Watch(caches.autoscalers, replicas_named, autoscaler_changed, starting, replay=True),
        Watch(caches.claims, find.claim, changed, replay=True),
        Watch(caches.claim_templates, find.template, exists_with_other_spec_or_metadata, replay=True),
        Watch(caches.claim_templates.on_undecodable, find.undecodable_template),
        *(Watch(cache.on_synced_or_absent, find.sets_with_claims) for cache in claim_kinds),
        *(Watch(cache, find.topology, spec_changed, replay=True) for cache in topologies),
        Watch(caches.priority_classes, find.priority_class, created_or_deleted),
        Watch(caches.priority_classes.on_synced_or_absent, find.sets_with_priority_class),
        *(
            Watch(cache, replicas_named, scheduler_object_changed, delays.of_scheduler_object, replay=True)
            for cache in schedulers
        ),
        *(Watch(cache.on_synced_or_absent, find.replicas_of_all_sets) for cache in schedulers),
        *(Watch(cache, find.replicas_of_all_sets) for cache in caches.inspected_crds.values()),
    )


def replicas_named(old: HasMetadata | None, new: HasMetadata | None) -> set[ReplicaKey]:
    """The replicas that the labels of an object name, or named before."""
    if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
        old = None  # so it is nearly always, and reading the labels is most of the cost of a pod event
    return {key for found in (old, new) if found is not None and (key := replica_of(found.metadata))}


def set_itself(old: PodCliqueSet | None, new: PodCliqueSet | None) -> tuple[SetKey]:
    """The set that changed."""
    found = new or old
    assert found is not None
    return (_key_of(found),)


def replicas_in_rollout(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[ReplicaKey]:
    """The replicas of a set whose rollout begins or ends."""
    for index in {index for index, _ in _updating_replicas(old) ^ _updating_replicas(new)}:
        yield ReplicaKey(new.metadata.namespace, new.metadata.name, index)


def autoscaler_changed(old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None) -> bool:
    """More than the status changed, which is updated every few seconds with measured values. The generation
    does not count changes of the spec."""
    return old is None or new is None or spec_or_metadata_changed(old, new) or old.spec != new.spec


def created_or_deleted(old: HasMetadata | None, new: HasMetadata | None) -> bool:
    """The object is new, or gone."""
    return old is None or new is None


def scheduler_object_changed(old: SchedulerObject | None, new: SchedulerObject | None) -> bool:
    """Spec, metadata or the reported status changed. The generation of Volcano's kind counts changes of the
    status, too."""
    return (
        old is None
        or new is None
        or old.spec != new.spec
        or metadata_changed(old, new)
        or old.reported_status != new.reported_status
    )


class _WorkloadKeys:
    """Looks up the sets and replicas that depend on an object."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def set_and_replicas(self, key: SetKey) -> Keys:
        """A set and all of its replicas, if it exists."""
        if (workload := self._caches.sets.get(key.namespace, key.name)) is not None:
            yield from self._with_replicas((workload,))

    def _with_replicas(self, workloads: Iterable[PodCliqueSet]) -> Keys:
        for workload in workloads:
            yield _key_of(workload)
            yield all_replicas(self._caches, _key_of(workload), workload)

    def changed_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> Keys:
        """The set and all of its replicas, surplus ones included. Finalizers of a set do not concern them:
        the operator adds its own while new replicas are planned."""
        (key,) = set_itself(old, new)
        yield key
        if changed_beyond_finalizers(old, new):
            yield all_replicas(self._caches, key, new)

    def _set_and_waiting_replicas(self, found: HasMetadata, old: HasMetadata | None) -> Keys:
        """The set of an object; if the object is new, also all replicas, which may wait for it."""
        if (key := set_of(found.metadata)) is not None:
            yield key
            if old is None:
                yield all_replicas(self._caches, key, self._caches.sets.get(key.namespace, key.name))

    def rbac_object(self, old: HasMetadata | None, new: HasMetadata | None) -> Keys:
        """The set, which repairs the object, and replicas that wait for it."""
        for found in (old, new):
            if found is not None:
                yield from self._set_and_waiting_replicas(found, old)

    def claim(self, old: PartialObjectMetadata | None, new: PartialObjectMetadata | None) -> Keys:
        """The replica of a claim. A claim that all replicas share is created by the set."""
        for found in (old, new):
            if found is None or set_of(found.metadata) is None:
                continue
            if labels.CLAIM_SCOPE_LABELS.isdisjoint(found.metadata.labels):
                yield from self._set_and_waiting_replicas(found, old)
            else:
                yield from replicas_named(self._caches.claim_owner(found), None)

    def template(self, _old: HasMetadata | None, new: HasMetadata) -> Keys:
        """The sets that refer to a template: they may wait for it or for its annotation."""
        return self._with_template(new.metadata.namespace, new.metadata.name)

    def undecodable_template(self, found: Undecodable) -> Keys:
        """The sets that refer to an undecodable template, which report it."""
        return self._with_template(*found.key)

    def _with_template(self, *key: str) -> Keys:
        return self._with_replicas(self._caches.sets.by_index(BY_TEMPLATE, key))

    def sets_with_claims(self) -> Keys:
        """All sets with shared claims: claims or their templates are synced, or not served any more."""
        sharing = [each for each in self._caches.sets if has_shared_claims(each.spec.template)]
        return self._with_replicas(sharing)

    def topology(self, old: HasMetadata | None, new: HasMetadata | None) -> Keys:
        """The sets that refer to a topology, whose levels may have changed."""
        found = new or old
        assert found is not None
        return self._with_replicas(self._caches.sets.by_index(BY_TOPOLOGY, found.metadata.name))

    def priority_class(self, old: HasMetadata | None, new: HasMetadata | None) -> Keys:
        """The sets that name a PriorityClass, which pods have only if it exists."""
        found = new or old
        assert found is not None
        return self._with_replicas(self._caches.sets.by_index(BY_PRIORITY_CLASS, found.metadata.name))

    def sets_with_priority_class(self) -> Keys:
        """All sets that name a PriorityClass: it is known now which ones exist."""
        naming = [each for each in self._caches.sets if each.spec.template.priority_class_name]
        return self._with_replicas(naming)

    def replicas_of_all_sets(self, *_event: Any) -> Keys:
        """All replicas: a scheduler's kind, for which they may wait, is served now or not any more."""
        for workload in self._caches.sets:
            yield all_replicas(self._caches, _key_of(workload), workload)


def _key_of(workload: PodCliqueSet) -> SetKey:
    return SetKey(workload.metadata.namespace, workload.metadata.name)


def _updating_replicas(found: PodCliqueSet) -> set[tuple[int, str]]:
    """The indexes of the replicas in rollout, with the template hash."""
    progress = found.status.update_progress
    entries = progress.currently_updating if progress else ()
    return {(entry.replica_index, found.status.current_generation_hash) for entry in entries}
