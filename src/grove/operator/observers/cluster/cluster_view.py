"""What the placement of gangs knows about the cluster: its nodes, and what pods use of them, kept up to date
event by event.

Pods use the node that they are bound to, those of others also the node that they are nominated for; what our
own nominations reserve is not counted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from grove import timing
from grove.api.naming.well_known import HOSTNAME
from grove.api.types import kubernetes_objects
from grove.logger import get_logger
from grove.operator.caches.cluster_pods import ClusterPod, ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.nodes import Nodes
from grove.operator.observers.cluster.device_use import ClaimedDevices, ClaimListener, DeviceUse
from grove.operator.observers.cluster.possible_nodes import may_run
from grove.plan.desired.pod_claims import PodClaims
from grove.topology.placement.model import Amounts, Node, Taint
from grove.topology.placement.needs.devices import DeviceCatalog, requested_classes
from grove.topology.placement.needs.requests import amounts

log = get_logger("grove.operator")

_Use = dict[int, dict[str, int]]
Key = TypeVar("Key", bound=Hashable)
Counted = TypeVar("Counted", bound=Hashable)


class ClusterView:
    """Nodes, their use by priority, and the pods of others that wait for a node."""

    def __init__(self, nodes: Nodes, pods: ClusterPods, devices: Devices) -> None:
        self._nodes, self._pods, self._devices = nodes, pods, devices
        self._read: dict[str, Node] = {}
        self._use: dict[str, _Use] = {}
        self._leaving: dict[str, Counter[float]] = {}
        """By node, when the grace periods of its terminating pods end, and of how many."""
        self._domain_nodes: dict[tuple[str, str], Counter[str]] = {}
        """By namespace and fabric domain, how many of its pods each node has."""
        self._unbound: dict[tuple[str, str], ClusterPod] = {}
        self._undecided: dict[str, ClusterPod] = {}
        self._changed_gangs: set[tuple[str, str]] = set()
        self._changed: set[str] = {node.metadata.name for node in nodes}
        self._listeners: list[Callable[[], None]] = []
        self._label_listeners: list[Callable[[str], None]] = []
        for pod in pods:
            self._count(None, pod)
        self._device_use = DeviceUse(devices, pods, self._add, self._forget_node, self._notify)
        nodes.require((HOSTNAME,))
        nodes.subscribe_names(self._on_node)
        nodes.subscribe(self._notify, part=lambda _: None)  # also when a list has no nodes
        pods.subscribe(self._on_pod)
        pods.on_synced(self._notify)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` on each change of a node or pod, once everything is listed."""
        self._listeners.append(listener)

    def subscribe_claims(self, listener: ClaimListener) -> None:
        """Call `listener` when other devices are counted for a claim."""
        self._device_use.subscribe_claims(listener)

    def subscribe_labels(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the name of each node whose kept labels have changed, or may have."""
        self._label_listeners.append(listener)

    @property
    def synced(self) -> bool:
        """Whether all nodes and pods are listed, and all devices if they are required. Without the right to
        list devices, only gangs wait that claim some."""
        devices = self._devices
        return self._nodes.synced and self._pods.synced.is_set() and (devices.synced or devices.is_forbidden)

    @property
    def problem(self) -> str:
        """Why nodes or pods cannot be watched at present, such as a missing RBAC permission; empty if both
        are watched."""
        problems = {"nodes": self._nodes.problem, "pods": self._pods.problem}
        return "; ".join(f"{kind}: {problem}" for kind, problem in problems.items() if problem)

    def require_devices(self) -> None:
        """Count the devices in ResourceSlices and their use from now on. Until they are listed, the view is
        not synced."""
        self._devices.require()

    def requests_devices(self, claims: Iterable[PodClaims]) -> bool:
        """Whether pods get devices for the extended resources that they request, as far as device classes
        are listed."""
        requested = {name for each in claims for name in each.requested}
        return bool(requested_classes(requested, self._devices.extended_resources))

    @property
    def device_catalog(self) -> DeviceCatalog | None:
        """The device classes of the cluster; None if they were never listed."""
        return self._device_use.catalog

    @property
    def device_problem(self) -> str:
        """Why devices cannot be listed; empty if they can, or if none are required."""
        return f"devices: {self._devices.problem}" if self._devices.is_forbidden else ""

    def subscribe_device_catalog(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the device classes are listed, and when they have changed, or may have."""
        self._device_use.subscribe_catalog(listener)

    @property
    def is_forbidden(self) -> bool:
        """Whether a right is missing without which the cluster cannot be listed."""
        return not self.synced and "403" in self.problem

    @property
    def delay(self) -> str:
        """Why not all of it is listed yet, as far as it is known; empty once it is."""
        if self.synced:
            return ""
        return self.problem or (f"devices: {self._devices.problem}" if self._devices.problem else "")

    def take_changed_nodes(self) -> set[str]:
        """The nodes that changed since the last call, or whose use did, and those that were removed."""
        self._device_use.refresh()
        changed, self._changed = self._changed, set()
        return changed

    def take_changed_gangs(self) -> set[tuple[str, str]]:
        """Namespace and name of the gangs whose pods changed since the last call."""
        changed, self._changed_gangs = self._changed_gangs, set()
        return changed

    def mark_all_changed(self) -> None:
        """Count every node as changed."""
        self._changed.update(node.metadata.name for node in self._nodes)

    def require(self, keys: Collection[str]) -> bool:
        """Keep these labels of nodes. Returns whether nodes are listed with them already."""
        self._nodes.require(keys)
        return self._nodes.synced and self._nodes.keys.issuperset(keys)

    @property
    def size(self) -> int:
        """How many nodes are in use by pods."""
        return len(self._use)

    def node(self, name: str) -> Node | None:
        """A node; the same object until the node changes. None if it does not exist."""
        self._device_use.refresh()
        known = self._read.get(name)
        if known is None and (found := self._nodes.get(name)) is not None:
            known = self._read[name] = _read(found, self._device_use.allocatable(name))
        return known

    def use_by_priority(self, node: str) -> Mapping[int, Amounts]:
        """What pods of each priority use of a node."""
        self._device_use.refresh()
        return {priority: dict(used) for priority, used in self._use.get(node, {}).items()}

    def claimed_devices(self) -> Iterator[ClaimedDevices]:
        """The devices of each claim, which are part of what is used of nodes."""
        return self._device_use.claimed()

    def usable_nodes(self) -> Iterator[tuple[Node, Mapping[int, Amounts]]]:
        """The ready and schedulable nodes, with what pods of each priority use of them."""
        self._device_use.refresh()
        for each in self._nodes:
            node = self.node(each.metadata.name)
            if node is not None and node.ready and not node.unschedulable:
                yield node, self._use.get(node.name, {})

    def pod(self, namespace: str, name: str) -> ClusterPod | None:
        """A pod as the watch has shown it; None if it does not exist or has ended."""
        return self._pods.get(namespace, name)

    def unbound_foreign(self, scheduler_names: Collection[str]) -> Iterator[ClusterPod]:
        """The pods of others that one of these schedulers may bind at any moment."""
        return (pod for pod in self._unbound.values() if pod.profile.scheduler in scheduler_names)

    def undecided(self, scheduler_names: Collection[str]) -> Iterator[ClusterPod]:
        """The pods, ours and those of others, that one of these schedulers has neither bound nor found
        unschedulable: it may be about to bind them."""
        return (pod for pod in self._undecided.values() if pod.profile.scheduler in scheduler_names)

    def could_go(self, pod: ClusterPod, node: str) -> bool:
        """Whether an unbound pod without gates could be bound to a node, however full the node is."""
        found, shape = self.node(node), pod.profile.shape
        return found is not None and shape is not None and may_run(shape, found, self._nodes.keys)

    def leaving_until(self, node: str) -> float:
        """Until when the terminating pods of a node are waited for; 0 if there are none. What is left then is
        on a lost node, or has a finalizer, and may stay for any time."""
        leaving = self._leaving.get(node)
        return max(leaving) + timing.TERMINATING_EXTRA_WAIT if leaving else 0.0

    def nodes_of_domain(self, namespace: str, domain: str) -> frozenset[str]:
        """The nodes with pods of a fabric domain, but for terminating ones: they leave it."""
        return frozenset(self._domain_nodes.get((namespace, domain), ()))

    def has_room(self, name: str, requests: Amounts) -> bool:
        """Whether a node has room for a pod with these requests."""
        if (node := self.node(name)) is None:
            return False
        used = self._use.get(name, {}).values()
        return all(
            node.allocatable.get(resource, 0) - sum(each.get(resource, 0) for each in used) >= amount
            for resource, amount in requests.items()
            if amount
        )

    def _on_node(self, name: str) -> None:
        before = self._read.get(name)
        self._forget_node(name)
        self._notify()
        # The earlier labels of a node that was never read are not known, and not in any status.
        if before is None or (after := self.node(name)) is None or before.labels != after.labels:
            for listener in self._label_listeners:
                listener(name)

    def _forget_node(self, name: str) -> None:
        """Read a node again when it is asked for."""
        self._read.pop(name, None)
        self._changed.add(name)

    def _on_pod(self, old: ClusterPod | None, new: ClusterPod | None) -> None:
        self._count(old, new)
        self._notify()

    def _notify(self) -> None:
        if self.synced:
            for listener in self._listeners:
                listener()

    def _count(self, old: ClusterPod | None, new: ClusterPod | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.gang:
                self._changed_gangs.add((pod.namespace, pod.gang))
        if old is not None:
            self._unbound.pop((old.namespace, old.name), None)
            self._undecided.pop(old.uid, None)
        for pod, sign in ((old, -1), (new, 1)):
            if pod is not None and pod.node and pod.profile.terminating:
                self._count_leaving(pod, sign)
            elif pod is not None and pod.node and pod.domain:
                _add_to(self._domain_nodes, (pod.namespace, pod.domain), pod.node, sign)
        if new is not None and new.is_undecided:
            self._undecided[new.uid] = new
        if new is not None and new.is_unbound_foreign:
            self._unbound[new.namespace, new.name] = new
        if _used(old) != _used(new):
            for pod, sign in ((old, -1), (new, 1)):
                if pod is not None and pod.used_node:
                    self._add(pod.used_node, pod.profile.priority, pod.profile.requests, sign)

    def _count_leaving(self, pod: ClusterPod, sign: int) -> None:
        _add_to(self._leaving, pod.node, pod.leaves_by, sign)

    def _add(self, node: str, priority: int, requests: Amounts, sign: int) -> None:
        """Add requests to the use of a node, or subtract them. What is not used is not listed."""
        self._changed.add(node)
        by_priority = self._use.setdefault(node, {})
        used = by_priority.setdefault(priority, {})
        for resource, amount in requests.items():
            if total := used.get(resource, 0) + sign * amount:
                used[resource] = total
            else:
                used.pop(resource, None)
        if not used:
            del by_priority[priority]
            if not by_priority:
                del self._use[node]


def _add_to(counts: dict[Key, Counter[Counted]], key: Key, counted: Counted, sign: int) -> None:
    """Add to a count, or subtract from it. What is not counted is not listed."""
    found = counts.setdefault(key, Counter())
    found[counted] += sign
    if not found[counted]:
        del found[counted]
    if not found:
        del counts[key]


def _used(pod: ClusterPod | None) -> object:
    """What the use of nodes by a pod depends on."""
    if pod is None or not pod.used_node:
        return None
    return pod.used_node, pod.profile.priority, pod.profile.requests


def _read(found: kubernetes_objects.Node, devices: Amounts) -> Node:
    resources = chain.from_iterable(_amount(found, resource) for resource in found.status.allocatable)
    return Node(
        found.metadata.name,
        found.metadata.labels,
        {**devices, **dict(resources)},  # a device plugin goes before devices of the same resource
        tuple(Taint(each.key, each.value, each.effect) for each in found.spec.taints),
        any(each.type == "Ready" and each.status == "True" for each in found.status.conditions),
        found.spec.unschedulable,
    )


def _amount(found: kubernetes_objects.Node, resource: str) -> Iterator[tuple[str, int]]:
    """An allocatable resource as an integer. Of a resource whose quantity cannot be parsed there is none."""
    try:
        yield from amounts({resource: found.status.allocatable[resource]}).items()
    except ValueError as problem:
        reason = f"{resource}: {problem}"
        log.warning("allocatable ignored", key=found.metadata.name, action="continue", reason=reason)
