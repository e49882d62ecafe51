"""Which device classes the cluster has, how many of their devices each node has, and how many of those are
allocated to claims, by the priority of the pods that use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from grove.api.types.cluster.device_objects import AllocatedClaim, AllocatedDevice, DeviceSliceSpec
from grove.operator.caches.cluster_pods import ClusterPod, ClusterPods
from grove.operator.caches.devices import Devices, is_for_requests
from grove.topology.placement.model import Amounts
from grove.topology.placement.needs.devices import (
    DeviceCatalog,
    catalog,
    devices_by_node,
    newest,
    resources_of,
)

NOT_PREEMPTED = 2**31 - 1
"""The priority of use that no preemption ends: the largest that a pod can have."""

Change = Callable[[str, int, Amounts, int], None]
"""Adds amounts to the use of a node by pods of a priority, or subtracts them with the sign -1."""

ClaimListener = Callable[[tuple[str, str], Mapping[str, Amounts]], None]
"""Namespace and name of a claim, and by node the devices that are allocated to it."""


class _Counted(Struct, frozen=True):
    """The devices of each node that are allocated to a claim, and the priority of its pods."""

    priority: int
    by_node: Mapping[str, Amounts]


class ClaimedDevices(Struct, frozen=True):
    """The devices that are allocated to a claim, and the pods that it is reserved for."""

    namespace: str
    pods: tuple[str, ...]
    by_node: Mapping[str, Amounts]


class DeviceUse:
    """Counts devices and their use. `change` is called for each change of the use of a node, `forget_node`
    with a node whose devices changed, `notify` after each event."""

    def __init__(
        self,
        devices: Devices,
        pods: ClusterPods,
        change: Change,
        forget_node: Callable[[str], None],
        notify: Callable[[], None],
    ) -> None:
        self._devices, self._pods = devices, pods
        self._change, self._forget_node, self._notify = change, forget_node, notify
        self._allocatable: Mapping[str, Amounts] = {}
        self._catalog = DeviceCatalog()
        self._catalog_listeners: list[Callable[[], None]] = []
        self._claim_listeners: list[ClaimListener] = []
        self._pools: dict[tuple[str, str], list[DeviceSliceSpec]] = {}
        self._counted: dict[tuple[str, str], _Counted] = {}
        self._unknown_pods: set[tuple[str, str]] = set()
        self._outdated, self._was_listed = True, False
        pods.subscribe(self._on_pod)
        devices.slices.subscribe(self._on_slice)
        devices.classes.subscribe(self._on_class)
        devices.claims.subscribe(self._on_claim)
        for each in devices.all:
            each.on_synced_or_absent(notify)
            each.on_synced_or_absent(self._notify_catalog)

    def subscribe_catalog(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the catalog has changed, or may have, and when everything is listed."""
        self._catalog_listeners.append(listener)

    def subscribe_claims(self, listener: ClaimListener) -> None:
        """Call `listener` when other devices are counted for a claim."""
        self._claim_listeners.append(listener)

    @property
    def catalog(self) -> DeviceCatalog | None:
        """The device classes of the cluster, while they are listed again as they were; None if they were
        never listed."""
        if self._devices.listed:
            self.refresh()
            self._was_listed = True
        return self._catalog if self._was_listed else None

    def allocatable(self, node: str) -> Amounts:
        """How many devices of each class a node has."""
        return self._allocatable.get(node, {})

    def claimed(self) -> Iterator[ClaimedDevices]:
        """The counted devices of each claim."""
        self.refresh()
        for claim in self._devices.claims:
            meta = claim.metadata
            counted = self._counted.get((meta.namespace, meta.name))
            if counted is not None:
                names = tuple(each.name for each in claim.status.reserved_for)
                yield ClaimedDevices(meta.namespace, names, counted.by_node)

    def refresh(self) -> None:
        """Count all devices again if slices or classes changed. That is rare, but then it is many of them,
        so it is done once when the result is read."""
        if not self._outdated:
            return
        self._outdated = False
        self._unknown_pods.clear()
        slices, known = list(self._devices.slices), self._catalog
        self._catalog = catalog(self._devices.classes, slices)
        before, self._allocatable = self._allocatable, devices_by_node(slices, self._catalog)
        self._pools = {}
        for spec in newest(slices):
            self._pools.setdefault((spec.driver, spec.pool.name), []).append(spec)
        for node in before.keys() | self._allocatable.keys():
            if before.get(node) != self._allocatable.get(node):
                self._forget_node(node)
        for claim in self._devices.claims:
            self._set(claim, self._count(claim))
        if self._catalog != known:
            self._notify_catalog()

    def _notify_catalog(self) -> None:
        if self._devices.synced:
            for listener in self._catalog_listeners:
                listener()

    def _on_pod(self, old: ClusterPod | None, new: ClusterPod | None) -> None:
        """Two watches have no common order: a claim may be seen before the pod that it is reserved for."""
        if old is None and new is not None and (new.namespace, new.name) in self._unknown_pods:
            self._outdated = True

    def _on_slice(self, _old: object, _new: object) -> None:
        self._outdated = True
        self._notify()

    def _on_class(self, _old: object, _new: object) -> None:
        self._outdated = True
        self._notify_catalog()
        self._notify()

    def _on_claim(self, old: AllocatedClaim | None, new: AllocatedClaim | None) -> None:
        found = new or old
        assert found is not None
        if old is not None:
            self._unknown_pods -= {(old.metadata.namespace, each.name) for each in old.status.reserved_for}
        if self._set(found, self._count(new) if new is not None else None):
            self._notify()

    def _set(self, claim: AllocatedClaim, after: _Counted | None) -> bool:
        """Replace what was counted for a claim. Returns whether that differs."""
        key = (claim.metadata.namespace, claim.metadata.name)
        before = self._counted.pop(key, None)
        if after is not None:
            self._counted[key] = after
        if before == after:
            return False
        for counted, sign in ((before, -1), (after, 1)):
            if counted is not None:
                for node, amounts in counted.by_node.items():
                    self._change(node, counted.priority, amounts, sign)
        for listener in self._claim_listeners:
            listener(key, after.by_node if after is not None else {})
        return True

    def _count(self, claim: AllocatedClaim) -> _Counted | None:
        """What is allocated to a claim; None if nothing that is counted."""
        by_node: dict[str, Counter[str]] = {}
        allocation = claim.status.allocation
        for device in allocation.devices.results if allocation is not None else ():
            for node, resource in self._used(device, in_requests=is_for_requests(claim)):
                by_node.setdefault(node, Counter())[resource] += 1
        return _Counted(self._priority(claim), by_node) if by_node else None

    def _used(self, allocated: AllocatedDevice, *, in_requests: bool) -> Iterator[tuple[str, str]]:
        """The node of an allocated device, with each resource that it is counted as. `in_requests`: its pod
        requests it as an extended resource, which is counted with the pod."""
        for spec in self._pools.get((allocated.driver, allocated.pool), ()):
            for device in spec.devices:
                if device.name == allocated.device and spec.node_name and not allocated.admin_access:
                    for name in self._catalog.classes_of(spec.driver, device):
                        *others, requested = resources_of(name, self._catalog)
                        counted = others if in_requests else (*others, requested)
                        yield from ((spec.node_name, resource) for resource in counted)

    def _priority(self, claim: AllocatedClaim) -> int:
        """The highest priority of the pods that a claim is reserved for. Where a pod is not known (yet), no
        preemption is known to free the devices."""
        namespace, priorities = claim.metadata.namespace, list[int]()
        for each in claim.status.reserved_for:
            pod = self._pods.get(namespace, each.name)
            if pod is None:
                self._unknown_pods.add((namespace, each.name))
                return NOT_PREEMPTED
            priorities.append(pod.profile.priority)
        return max(priorities, default=NOT_PREEMPTED)
