"""The watches of topologies.

The status of a topology reports its nodes and the sets that refer to it. Nothing depends on that, so it is
updated with a delay: changes within a few seconds are one write.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove import timing
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import HasMetadata
from grove.operator.caches.owners import owning_topology
from grove.operator.caches.predicates import spec_changed, status_changed_by_others
from grove.operator.caches.registry import Caches
from grove.operator.keys import TopologyKey
from grove.operator.observers.cluster.free_slots import FreeSlotsObserver
from grove.operator.watches.table import Watch
from grove.schedulers.backend import AnyTopology, SchedulerObject
from grove.topology.fallbacks import topology_names


def topology_watches(caches: Caches, free_slots: FreeSlotsObserver | None = None) -> tuple[Watch, ...]:
    """The watches of topologies of both kinds, and of free slots if these are counted."""
    find = _TopologyKeys(caches)
    topologies = (caches.topologies, caches.topology_bindings)
    of_schedulers = caches.scheduler_topologies.values()
    by_others = status_changed_by_others
    return (
        *(Watch(cache, topology_itself, spec_changed, replay=True) for cache in topologies),
        *(Watch(cache, topology_itself, by_others(cache), timing.BATCH_DELAY) for cache in topologies),
        *(Watch(cache, find.scheduler_topology, replay=True) for cache in of_schedulers),
        *(Watch(cache.on_synced_or_absent, find.all_topologies) for cache in of_schedulers),
        Watch(caches.nodes.subscribe, find.all_topologies, delay=timing.TOPOLOGY_USAGE_DELAY),
        Watch(caches.sets, topologies_referred_to, spec_changed, timing.TOPOLOGY_USAGE_DELAY),
        *(
            (Watch(free_slots.subscribe, find.all_topologies, delay=timing.TOPOLOGY_USAGE_DELAY),)
            if free_slots is not None
            else ()
        ),
    )


def topology_itself(old: HasMetadata | None, new: HasMetadata | None) -> tuple[TopologyKey]:
    """The topology that changed; both kinds share their names."""
    found = new or old
    assert found is not None
    return (TopologyKey(found.metadata.name),)


def topologies_referred_to(old: PodCliqueSet | None, new: PodCliqueSet | None) -> Iterator[TopologyKey]:
    """The topologies that a set refers to now and did not before, or the reverse."""
    before, after = (
        topology_names(found.spec.template) if found is not None else frozenset() for found in (old, new)
    )
    return (TopologyKey(name) for name in before ^ after)


class _TopologyKeys:
    """Looks up topologies."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def _topologies(self) -> tuple[AnyTopology, ...]:
        return (*self._caches.topologies, *self._caches.topology_bindings)

    def all_topologies(self) -> Iterator[TopologyKey]:
        """All topologies."""
        return (TopologyKey(topology.metadata.name) for topology in self._topologies())

    def scheduler_topology(
        self, old: SchedulerObject | None, new: SchedulerObject | None
    ) -> Iterator[TopologyKey]:
        """The topology that owns a scheduler's topology object, and those that refer to it."""
        found = new or old
        assert found is not None
        if owner := owning_topology(found):
            yield TopologyKey(owner)
        for topology in self._topologies():
            named = {topology.metadata.name, *(name for _, name in topology.spec.references)}
            if found.metadata.name in named:
                yield TopologyKey(topology.metadata.name)
