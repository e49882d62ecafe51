"""What is used of each node: by pods of this operator, and by others. Reads the operator's view of the
cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from grove.topology.placement.model import Amounts

if TYPE_CHECKING:
    from grove.operator.caches.cluster_pods import ClusterPod
    from grove.operator.observers.cluster.cluster_view import ClusterView

_KEEPS_OUT = ("NoSchedule", "NoExecute")


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
    view: ClusterView,
    pods: Iterable[ClusterPod],
    names: Iterable[str],
    is_accelerator: Callable[[str], bool],
) -> list[NodeLoad]:
    """The nodes of these names."""

    def count(amounts: Amounts) -> int:
        return sum(amount for resource, amount in amounts.items() if is_accelerator(resource))

    bound: Counter[str] = Counter()
    nominated: Counter[str] = Counter()
    for pod in pods:
        if pod.gang:
            (bound if pod.node else nominated)[pod.node or pod.nominated_node] += count(pod.profile.requests)
    found = []
    for name in names:
        if (node := view.node(name)) is None:
            continue
        used = sum(map(count, view.use_by_priority(name).values()))
        found.append(
            NodeLoad(
                name,
                node.labels,
                count(node.allocatable),
                bound[name] + nominated[name],
                max(0, used - bound[name]),
                node.ready,
                node.unschedulable,
                tuple(dict.fromkeys(each.key for each in node.taints if each.effect in _KEEPS_OUT)),
            )
        )
    return found
