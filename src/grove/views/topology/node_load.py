"""What is used of each node: by pods of this operator, and by others. Reads the operator's view of the
cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from grove.topology.placement.model import Amounts

if TYPE_CHECKING:
    from grove.operator.caches.cluster_pods import ClusterPod
    from grove.operator.observers.cluster.cluster_view import ClusterView
    from grove.operator.observers.cluster.free_slots import AcceleratorNames

KEEPS_OUT = ("NoSchedule", "NoExecute")


class NodeLoad(Struct, frozen=True):
    """A node and the use of its GPUs."""

    name: str
    labels: Mapping[str, str] = {}
    gpus: int = 0
    ours: int = 0
    """Of bound pods of PodCliqueSets, and of those that the operator has nominated for the node."""
    others: int = 0
    ready: bool = True
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    """The keys of taints that keep pods out."""

    @property
    def usable(self) -> bool:
        """Whether the scheduler binds pods to it; taints depend on the pod."""
        return self.ready and not self.cordoned

    @property
    def unused(self) -> int:
        """GPUs that no pod uses, whether pods may use them or not."""
        return max(0, self.gpus - self.ours - self.others)


def node_loads(
    view: ClusterView, pods: Iterable[ClusterPod], names: Iterable[str], accelerators: AcceleratorNames
) -> list[NodeLoad]:
    """The nodes of these names."""
    bound, nominated = _ours(view, pods)
    found = []
    for name in names:
        if (node := view.node(name)) is None:
            continue
        resources = accelerators(node.allocatable)
        used = sum(_sum(each, resources) for each in view.use_by_priority(name).values())
        ours = _sum(bound.get(name, {}), resources)
        found.append(
            NodeLoad(
                name,
                node.labels,
                _sum(node.allocatable, resources),
                ours + _sum(nominated.get(name, {}), resources),
                max(0, used - ours),
                node.ready,
                node.unschedulable,
                tuple(dict.fromkeys(each.key for each in node.taints if each.effect in KEEPS_OUT)),
            )
        )
    return found


_ByNode = dict[str, Counter[str]]


def _ours(view: ClusterView, pods: Iterable[ClusterPod]) -> tuple[_ByNode, _ByNode]:
    """By node, what bound pods of ours use, with the devices of their claims, and what those request that are
    nominated for it."""
    bound, nominated = _ByNode(), _ByNode()
    for pod in pods:
        if pod.gang:
            by_node = bound if pod.node else nominated
            by_node.setdefault(pod.node or pod.nominated_node, Counter()).update(pod.profile.requests)
    for claim in view.claimed_devices():
        users = (view.pod(claim.namespace, name) for name in claim.pods)
        if any(user is not None and user.gang for user in users):
            for node, amounts in claim.by_node.items():
                bound.setdefault(node, Counter()).update(amounts)
    return bound, nominated


def _sum(amounts: Amounts, resources: Iterable[str]) -> int:
    return sum(amounts.get(resource, 0) for resource in resources)
