"""Counts the free slots of topologies, for their statuses and metrics: how many gangs of which size fit now.

Pods come and go all the time, so the slots of a topology are counted at most every 30 seconds, and only after
a change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache

from msgspec import Struct

from grove import timing
from grove.api.naming.external_keys import NVIDIA_GPU
from grove.fabrics.nvidia import Nvidia
from grove.fabrics.registry import Providers
from grove.operator.metrics.placement import clear_free_slots, set_free_slots
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.schedulers.backend import AnyTopology
from grove.topology.placement.capacity import Accelerators, free_slots
from grove.topology.placement.membership import domain_path
from grove.topology.placement.model import Amounts
from grove.topology.placement.needs.devices import resource_of

SlotsByLevel = tuple[Mapping[int, int], ...]


class CountedSlots(Struct, frozen=True):
    """The free slots of a topology, by level."""

    slots: SlotsByLevel | None = None
    """None: nodes and pods are not listed yet."""
    due: float | None = None
    """When they are counted again; None: nothing has changed since."""


class _Count(Struct, frozen=True):
    levels: tuple[tuple[str, str], ...]
    slots: SlotsByLevel
    version: int
    at: float


AcceleratorNames = Callable[[Amounts], Collection[str]]
"""Which allocatable resources of a node are its accelerators."""


def accelerator_names(fabrics: Providers) -> AcceleratorNames:
    """Finds GPUs, and what one of the vendors joins by its links. Where a device plugin counts them, devices
    of the same node are the same accelerators."""
    classes = Nvidia.accelerator_classes.union(*(each.accelerator_classes for each in fabrics))
    devices = frozenset(map(resource_of, classes))

    @cache
    def is_accelerator(resource: str) -> bool:
        return resource == NVIDIA_GPU or any(each.amount({resource: 1}) > 0 for each in fabrics)

    def names(allocatable: Amounts) -> Collection[str]:
        # The kubelet lists 0 for a plugin that is gone.
        plugin = [resource for resource, amount in allocatable.items() if amount and is_accelerator(resource)]
        return plugin or devices.intersection(allocatable)

    return names


class FreeSlotsObserver:
    """Counts free accelerators by the levels of each topology. `reserved`: what is reserved on nodes for pods
    that are not bound yet."""

    def __init__(
        self,
        view: ClusterView,
        reserved: Callable[[], Mapping[str, Amounts]],
        fabrics: Providers,
        clock: Callable[[], float],
    ) -> None:
        self._view, self._reserved, self._clock = view, reserved, clock
        self._counts: dict[str, _Count] = {}
        self._version = 0  # of the cluster: grows with each change of a node or pod
        self._announced = False
        self._listeners: list[Callable[[], None]] = []
        self._names = accelerator_names(fabrics)
        view.subscribe(self._on_change)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the first change of the cluster after a count."""
        self._listeners.append(listener)

    def of(self, topology: AnyTopology) -> CountedSlots:
        """The free slots of a topology. They may be up to 30 seconds old: then they have a time at which they
        are counted again."""
        name, now = topology.metadata.name, self._clock()
        levels = tuple((level.domain, level.key) for level in topology.spec.levels)
        known = self._counts.get(name)
        if known is not None and known.levels == levels:
            if known.version == self._version:
                return CountedSlots(known.slots)
            if now < (due := known.at + timing.FREE_SLOTS_INTERVAL):
                return CountedSlots(known.slots, due)
        keys = [key for _, key in levels]
        if not self._view.require(keys) or not self._view.synced:
            return CountedSlots()
        slots = self._count(keys)
        self._counts[name] = _Count(levels, slots, self._version, now)
        self._announced = False
        set_free_slots(name, {level: each for (level, _), each in zip(levels, slots, strict=True)})
        return CountedSlots(slots)

    def forget(self, topology: str) -> None:
        """A topology was deleted."""
        if self._counts.pop(topology, None) is not None:
            clear_free_slots(topology)

    def _count(self, keys: list[str]) -> SlotsByLevel:
        return free_slots(self._accelerators(keys), len(keys))

    def _accelerators(self, keys: list[str]) -> Iterator[Accelerators]:
        """The accelerators of each node that can be used."""
        reserved = self._reserved()
        for node, use in self._view.usable_nodes():
            if resources := self._names(node.allocatable):
                taken = (*use.values(), reserved.get(node.name, {}))
                total = _sum(node.allocatable, resources)
                free = total - sum([_sum(each, resources) for each in taken])
                yield Accelerators(domain_path(node.labels, keys), total, free)

    def _on_change(self) -> None:
        self._version += 1
        if not self._announced:
            self._announced = True
            for listener in self._listeners:
                listener()


def _sum(amounts: Amounts, resources: Collection[str]) -> int:
    return sum([amounts.get(resource, 0) for resource in resources])
