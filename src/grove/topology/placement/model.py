"""What the solver is asked: nodes and their use, and a gang as a tree of units with pods.

Amounts are integers in the units that the scheduler counts: CPU in thousandths, everything else in ones.
A level of the topology is a node label key. A domain is the tuple of the values of a level and all broader
levels, so a rack label that occurs in two blocks names two domains; `()` is the whole cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

Amounts = Mapping[str, int]
Domain = tuple[str, ...]

CLUSTER: Domain = ()
PODS = "pods"
FABRIC_POD = "fabric-pod"
"""The resource of which each node has one: the place of the one pod that joins a fabric domain."""


class Taint(Struct, frozen=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Requirement(Struct, frozen=True):
    """One expression of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True):
    """A node selector term: all of it must match. `fields` name nodes by `metadata.name`."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Node(Struct, frozen=True):
    """A node; of its labels at least those of the levels and of all selectors."""

    name: str
    labels: Mapping[str, str] = {}
    allocatable: Amounts = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    unschedulable: bool = False


class NodeUse(Struct, frozen=True):
    """What is taken of a node: by bound pods of each priority, and by the reservations of other gangs."""

    by_priority: Mapping[int, Amounts] = {}
    reserved: Amounts = {}


class PodShape(Struct, frozen=True):
    """What decides where a pod fits. Pods of one template share one object."""

    requests: Amounts
    node_selector: Mapping[str, str] = {}
    affinity: tuple[Term, ...] | None = None
    """Required node affinity: one of these terms must match. None if the pod has none."""
    tolerations: tuple[Toleration, ...] = ()
    fabric: bool = False
    """Joins a fabric domain: at most one such pod per node."""
    partitions: tuple[int, ...] = ()
    """Which partitions of the problem it belongs to, by their positions."""


class Pod(Struct, frozen=True):
    name: str
    shape: PodShape
    extra: bool = False
    """Beyond the minimum of its clique: placed if there is room in the domain of its unit."""
    node: str = ""
    """Where the pod is bound already. Its requests are part of the use of that node."""


class Unit(Struct, frozen=True):
    """A gang, a group replica or a clique: all of it in one domain of the required level, and as much of it
    as possible in one domain of the preferred level."""

    name: str
    required: str = ""
    """The label key of a level; empty if any node will do."""
    preferred: str = ""
    parts: tuple[Unit, ...] = ()
    pods: tuple[Pod, ...] = ()


class Partition(Struct, frozen=True):
    """A label besides the levels, such as the one of a fabric: all pods that belong to it go to nodes with
    the same value. These need not lie inside a domain of a level, nor a domain among them."""

    key: str
    required: bool = True
    """Otherwise pods that do not fit on nodes with one value go anywhere."""
    value: str = ""
    """The value, if pods that belong to it have nodes already; empty: any."""


class Problem(Struct, frozen=True):
    """A gang to place."""

    gang: Unit
    within: Domain = CLUSTER
    """A domain to stay in, such as that of the base gang."""
    excluded: Mapping[Domain, str] = {}
    """Domains that are not tried now, with the reason: an attempt failed, and its back-off is not over."""
    further: tuple[Unit, ...] = ()
    """Declared units that come later and follow the gang: a domain with room for them is chosen first."""
    looks_ahead: bool = False
    """Whether a domain with room for the pods beyond the minimum, too, is chosen first."""
    former: Domain | None = None
    """Where the gang was before: chosen among equals."""
    preempt_below: int | None = None
    """Pods of a lower priority than this count as gone, except on nodes with reservations of other gangs."""
    vacated: frozenset[str] = frozenset()
    """Nodes on which all pods count as gone. What is reserved there for other gangs stays reserved."""
    partitions: tuple[Partition, ...] = ()
