"""ClusterTopology and ClusterTopologyBinding: the levels that topology constraints refer to."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.kind import AGE, GROVE, Column, Kind
from grove.api.types.topology_constraint import Domain
from grove.api.wire import Int32, Int64, Rule, Wire, always, checked, facet, text

LABEL_KEY = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
MAX_LEVELS = 16
"""Keeps the quadratic uniqueness rules below inside the API server's cost budget; hierarchies have 3 to 6."""


def _unique(field: str) -> Rule:
    # Without a reason: with FieldValueDuplicate the API server says "Duplicate value" and drops the message.
    return Rule(
        f"self.all(x, self.filter(y, y.{field} == x.{field}).size() == 1)",
        f"{field} must be unique across all levels",
    )


UNIQUE_LEVELS = checked(_unique("domain"), _unique("key"))


class TopologyLevel(Wire, frozen=True):
    """One level of the hierarchy: its name in topology constraints, and the node label whose values are its
    domains."""

    domain: Domain
    """The name of this level in topology constraints. By convention, from broad to narrow: region, zone,
    datacenter, block, rack, host, numa. Any other name is allowed."""
    key: Annotated[str, text(LABEL_KEY, shortest=1, longest=316)]
    """The node label whose values are this level's domains, for example `topology.kubernetes.io/zone`."""


class SchedulerReference(Wire, frozen=True):
    """A scheduler backend's topology object that the operator does not manage: it is compared with `levels`,
    and never changed."""

    scheduler_name: str
    """The backend, for example `kai-scheduler`."""
    reference: str
    """The name of the backend's own topology object."""


class SchedulerTopologyBinding(Wire, frozen=True):
    """The same as an entry of `schedulerReferences`, with the field names of later upstream versions."""

    scheduler_name: str
    """The backend, for example `kai-scheduler`."""
    topology_reference: str
    """The name of the backend's own topology object."""


class SchedulerTopologyStatus(Wire, frozen=True):
    """Whether the topology object of a scheduler backend has the levels of this topology."""

    scheduler_name: str
    """The backend."""
    in_sync: bool
    """Whether the backend's topology object has the same node labels in the same order."""
    reference: str = ""
    """The name of the backend's topology object."""
    topology_reference: str = always("")
    """The same as `reference`, under the field name of later upstream versions."""
    scheduler_backend_topology_observed_version: Int64 = 0
    """The generation of the backend's topology object that was compared; 0 if the object does not exist."""
    scheduler_backend_topology_observed_generation: Int64 = 0
    """The same as `schedulerBackendTopologyObservedVersion`, under the field name of later upstream
    versions."""
    message: str = ""
    """Why the backend's topology object is not in sync; empty if it is."""


class FreeSlots(Wire, frozen=True):
    """How many more gangs of one size fit into the domains of a level."""

    gpus: Int32
    """The size: the number of GPUs that must be free in one domain."""
    count: Int32
    """The number of such slots in all domains together; no GPU is in two of them."""


class TopologyLevelStatus(Wire, frozen=True):
    """How the labels of the cluster's nodes match one level."""

    domain: str
    """The name of the level."""
    labelled_nodes: int = always(0)
    """The number of nodes that carry the level's label."""
    values: int = always(0)
    """The number of different values of the label, which is the number of domains."""
    nesting_violations: int = 0
    """The number of domains whose nodes are in more than one domain of the next broader level."""
    examples: tuple[str, ...] = ()
    """Examples of such domains, with the broader domains that their nodes are in."""
    free_slots: tuple[FreeSlots, ...] = ()
    """The free slots of 1, 8, 16, 32 and 64 GPUs; empty if the operator places no gangs."""


class TopologyUsers(Wire, frozen=True):
    """The PodCliqueSets whose topology constraints name this topology."""

    count: int = always(0)
    """The number of PodCliqueSets."""
    pod_clique_sets: tuple[str, ...] = ()
    """The first PodCliqueSets by name, as `namespace/name`."""


class TopologyStatus(Wire, frozen=True):
    """Whether the scheduler backends' topology objects are in sync, how the nodes match the levels, and which
    PodCliqueSets use the topology."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last reconciled without an error."""
    conditions: tuple[Condition, ...] = ()
    """The condition types are `SchedulerTopologyDrift` and, on a binding, `Shadowed`."""
    scheduler_topology_statuses: tuple[SchedulerTopologyStatus, ...] = ()
    """One entry per topology-aware backend, and one per reference to a backend that is not available."""
    nodes: int = 0
    """The number of nodes of the cluster."""
    levels: tuple[TopologyLevelStatus, ...] = ()
    """One entry per level, in the order of `spec.levels`; empty until the nodes have been read."""
    used_by: TopologyUsers | None = None
    """The PodCliqueSets whose topology constraints name this topology."""
    domains: str = ""
    """The names of all levels, from broad to narrow, for `kubectl get`, which shows no lists."""


class ClusterTopologySpec(Wire, frozen=True):
    """The levels of a cluster, or of a part of it, from broad to narrow."""

    levels: Annotated[tuple[TopologyLevel, ...], facet(min_items=1, max_items=MAX_LEVELS), UNIQUE_LEVELS]
    """The levels, from broad to narrow. Can be edited in place: running pods keep their nodes, and new pods
    are placed by the new levels."""
    scheduler_references: tuple[SchedulerReference, ...] = ()
    """Backends whose topology object is not managed by the operator. For every other topology-aware backend
    the operator creates one from `levels`."""
    scheduler_topology_bindings: tuple[SchedulerTopologyBinding, ...] = ()
    """The same as `schedulerReferences`, under the field name of later upstream versions."""

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """(backend, its topology object), from both fields."""
        named = tuple((each.scheduler_name, each.reference) for each in self.scheduler_references)
        bound = tuple(
            (each.scheduler_name, each.topology_reference) for each in self.scheduler_topology_bindings
        )
        return named + bound


class ClusterTopologyBindingSpec(ClusterTopologySpec, frozen=True):
    """The levels of a cluster, or of a part of it, from broad to narrow.

    A duplicate domain or key is rejected by the webhook, whose message names the level as upstream's clients
    expect.
    """

    levels: Annotated[tuple[TopologyLevel, ...], facet(min_items=1, max_items=MAX_LEVELS)]
    """The levels, from broad to narrow. Can be edited in place: running pods keep their nodes, and new pods
    are placed by the new levels."""


_COLUMNS = (
    Column("Domains", "string", ".status.domains"),
    Column("Nodes", "integer", ".status.nodes", priority=1),
    Column("Drift", "string", '.status.conditions[?(@.type=="SchedulerTopologyDrift")].status'),
    Column("Sets", "integer", ".status.usedBy.count"),
    AGE,
)


class ClusterTopology(Wire, frozen=True, kw_only=True):
    """Names the levels of a cluster's network and hardware, for the topology constraints of PodCliqueSets."""

    KIND: ClassVar = Kind(
        GROVE,
        "ClusterTopology",
        "clustertopologies",
        short_names=("ct",),
        namespaced=False,
        columns=_COLUMNS,
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterTopologySpec
    """The levels, and the topology objects of scheduler backends that the operator does not manage."""
    status: TopologyStatus = TopologyStatus()
    """Whether the scheduler backends' topology objects are in sync, and how the nodes match the levels."""


class ClusterTopologyBinding(Wire, frozen=True, kw_only=True):
    """A ClusterTopology under the kind name of later upstream versions. If both kinds have an object of the
    same name, the ClusterTopology is used."""

    KIND: ClassVar = Kind(
        GROVE,
        "ClusterTopologyBinding",
        "clustertopologybindings",
        short_names=("ctb",),
        namespaced=False,
        columns=_COLUMNS,
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterTopologyBindingSpec
    """The levels, and the topology objects of scheduler backends that the operator does not manage."""
    status: TopologyStatus = TopologyStatus()
    """Whether the scheduler backends' topology objects are in sync, and how the nodes match the levels."""
