"""The pods and the claimed devices of each node, kept up to date event by event."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from grove.dashboard.state.summaries import object_key
from grove.operator.caches.cluster_pods import ClusterPod, ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.topology.placement.model import Amounts

Key = tuple[str, str]


class NodeUse:
    """Finds what uses a node. `changed` is called with the name of each node whose use changes."""

    def __init__(
        self, view: ClusterView, pods: ClusterPods, devices: Devices, changed: Callable[[str], None]
    ) -> None:
        self._view, self._devices, self._changed = view, devices, changed
        self._pods: dict[str, dict[Key, ClusterPod]] = {}
        self._by_claim: dict[Key, Mapping[str, Amounts]] = {}
        self._claims: dict[str, dict[Key, None]] = {}
        """By node, the claims with devices of it."""
        pods.subscribe(self._on_pod)
        view.subscribe_claims(self._on_devices)
        devices.claims.subscribe(self._on_claim)

    def pods(self, node: str) -> Collection[ClusterPod]:
        """The pods that are bound to a node or nominated for it."""
        return self._pods.get(node, {}).values()

    def claimed(self, node: str) -> Iterator[tuple[str, Amounts]]:
        """The devices of a node that are allocated to a claim, with the key of the gang of its pods; empty if
        they are not ours."""
        for key in self._claims.get(node, ()):
            yield self._gang(key), self._by_claim[key][node]

    def _gang(self, key: Key) -> str:
        claim = self._devices.claims.get(*key)
        users = (self._view.pod(key[0], each.name) for each in (claim.status.reserved_for if claim else ()))
        gangs = (object_key(key[0], user.gang) for user in users if user is not None and user.gang)
        return next(gangs, "")

    def _on_pod(self, old: ClusterPod | None, new: ClusterPod | None) -> None:
        for pod in (old, new):
            if pod is None or not (node := pod.node or pod.nominated_node):
                continue
            known, key = self._pods.setdefault(node, {}), (pod.namespace, pod.name)
            if pod is new:
                known[key] = pod
            else:
                known.pop(key, None)
                if not known:
                    del self._pods[node]
            self._changed(node)

    def _on_devices(self, key: Key, by_node: Mapping[str, Amounts]) -> None:
        """Other devices are counted for a claim. The view knows that their nodes have changed."""
        for node in self._by_claim.pop(key, {}):
            claims = self._claims[node]
            del claims[key]
            if not claims:
                del self._claims[node]
        if by_node:
            self._by_claim[key] = by_node
        for node in by_node:
            self._claims.setdefault(node, {})[key] = None

    def _on_claim(self, old: object, new: object) -> None:
        """A claim may be reserved for other pods now."""
        found = new or old
        meta = found.metadata  # type: ignore[attr-defined]
        for node in self._by_claim.get((meta.namespace, meta.name), ()):
            self._changed(node)
