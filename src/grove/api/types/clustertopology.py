"""Topologies of the cluster, and the constraints by which workloads ask to sit close together."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.kind import AGE, GROVE, Column, Kind
from grove.api.wire import Int64, Rule, Wire, always, checked, facet, text

LABEL_KEY = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
MAX_LEVELS = 16
"""Keeps the quadratic uniqueness rules below inside the API server's cost budget; hierarchies have 3 to 6."""

Domain = Annotated[str, text(r"^[a-z][a-z0-9-]*$", shortest=1, longest=63)]


def _unique(field: str) -> Rule:
    # Without a reason: with FieldValueDuplicate the API server says "Duplicate value" and drops the message.
    return Rule(
        f"self.all(x, self.filter(y, y.{field} == x.{field}).size() == 1)",
        f"{field} must be unique across all levels",
    )


UNIQUE_LEVELS = checked(_unique("domain"), _unique("key"))

PACKS_SOMETHING = checked(
    Rule(
        "has(self.pack) || has(self.packDomain)",
        "topologyConstraint must specify pack or deprecated packDomain",
        "FieldValueRequired",
        ".pack",
    )
)


class TopologyPack(Wire, frozen=True):
    """How close together one instance must or should sit."""

    RULES: ClassVar = (
        Rule(
            "has(self.required) || has(self.preferred)",
            "pack must specify at least one of required or preferred",
            "FieldValueRequired",
        ),
    )

    required: Domain = ""
    """The domain that one instance must fit into; without room in a single one it is not scheduled."""
    preferred: Domain = ""
    """The domain to try first, best effort: usually narrower than `required`, never in the way."""


class TopologyConstraint(Wire, frozen=True):
    """Packs each instance of the constrained component into one topology domain, each on its own."""

    RULES: ClassVar = (
        Rule(
            "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            "must not set both pack.required and deprecated packDomain",
            field_path=".pack.required",
        ),
    )

    topology_name: str = ""
    """The ClusterTopology, or ClusterTopologyBinding, whose domains are meant. Immutable. Said on the set, it
    holds for all its parts; a part that names one must name the same."""
    pack: TopologyPack | None = None
    """How close together one instance must or should sit."""
    pack_domain: Domain = ""
    """The same as `pack.required`; use one of the two."""

    @property
    def required(self) -> str:
        """The domain that one instance must fit into, whichever way it was spelled."""
        return (self.pack.required if self.pack else "") or self.pack_domain

    @property
    def preferred(self) -> str:
        """The domain to try first, or none."""
        return self.pack.preferred if self.pack else ""


class TopologyLevel(Wire, frozen=True):
    """One level of the hierarchy: what workloads call it, and the node label that tells its domains apart."""

    domain: Domain
    """What workloads call this level. By convention, broad to narrow: region, zone, datacenter, block, rack,
    host, numa; any other name will do."""
    key: Annotated[str, text(LABEL_KEY, shortest=1, longest=316)]
    """The node label whose values are this level's domains, for example `topology.kubernetes.io/zone`."""


class SchedulerReference(Wire, frozen=True):
    """A scheduler backend's topology object that somebody else manages: compared, never changed."""

    scheduler_name: str
    """The backend, for example `kai-scheduler`."""
    reference: str
    """The name of the backend's own topology object."""


class SchedulerTopologyBinding(Wire, frozen=True):
    """A SchedulerReference in upstream's later spelling."""

    scheduler_name: str
    """The backend, for example `kai-scheduler`."""
    topology_reference: str
    """The name of the backend's own topology object."""


class SchedulerTopologyStatus(Wire, frozen=True):
    """Whether a scheduler backend's topology object says the same as this one."""

    scheduler_name: str
    """The backend."""
    in_sync: bool
    """Whether its levels are ours, in the same order."""
    reference: str = ""
    """The backend's topology object."""
    topology_reference: str = always("")
    """The backend's topology object, in upstream's later spelling."""
    scheduler_backend_topology_observed_version: Int64 = 0
    """The generation of the backend's object that was compared; 0 when there is none."""
    scheduler_backend_topology_observed_generation: Int64 = 0
    """The same, in upstream's later spelling."""
    message: str = ""
    """Why it is not in sync."""


class TopologyLevelStatus(Wire, frozen=True):
    """What the nodes of the cluster say to a level."""

    domain: str
    """The level."""
    labelled_nodes: int = always(0)
    """How many nodes carry its label."""
    values: int = always(0)
    """How many different values the label has: the domains that there are."""
    nesting_violations: int = 0
    """How many of those values lie in more than one domain of the level around it."""
    examples: tuple[str, ...] = ()
    """Some of those values, and where they lie."""


class TopologyUsers(Wire, frozen=True):
    """Who asks for levels of the topology."""

    count: int = always(0)
    """How many PodCliqueSets."""
    pod_clique_sets: tuple[str, ...] = ()
    """The first of them by name, as `namespace/name`."""


class TopologyStatus(Wire, frozen=True):
    """How the topology fares with the scheduler backends, and what the cluster says to it."""

    observed_generation: Int64 = 0
    """The generation that was last handled without an error."""
    conditions: tuple[Condition, ...] = ()
    """`SchedulerTopologyDrift`; on a binding also `Shadowed`."""
    scheduler_topology_statuses: tuple[SchedulerTopologyStatus, ...] = ()
    """One entry per topology-aware backend, and one per reference to a backend that is not available."""
    nodes: int = 0
    """How many nodes the cluster has."""
    levels: tuple[TopologyLevelStatus, ...] = ()
    """One entry per level, in the same order, as soon as the nodes have been looked at."""
    used_by: TopologyUsers | None = None
    """The workloads that name this topology."""


class ClusterTopologySpec(Wire, frozen=True):
    """The levels of a cluster, or of a part of it, from broad to narrow."""

    levels: Annotated[tuple[TopologyLevel, ...], facet(min_items=1, max_items=MAX_LEVELS), UNIQUE_LEVELS]
    """From broad to narrow. May be edited in place: running pods stay, new ones follow the new levels."""
    scheduler_references: tuple[SchedulerReference, ...] = ()
    """Backends whose topology object is managed elsewhere; for all others it is made from `levels`."""
    scheduler_topology_bindings: tuple[SchedulerTopologyBinding, ...] = ()
    """The same, in upstream's later spelling."""

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """(backend, its topology object), whichever way they were spelled."""
        named = tuple((each.scheduler_name, each.reference) for each in self.scheduler_references)
        bound = tuple(
            (each.scheduler_name, each.topology_reference) for each in self.scheduler_topology_bindings
        )
        return named + bound


class ClusterTopologyBindingSpec(ClusterTopologySpec, frozen=True):
    """The levels of a cluster, or of a part of it, from broad to narrow.

    A double domain or key is refused by the webhook, which names the level as upstream's clients expect.
    """

    levels: Annotated[tuple[TopologyLevel, ...], facet(min_items=1, max_items=MAX_LEVELS)]
    """From broad to narrow. May be edited in place: running pods stay, new ones follow the new levels."""


_COLUMNS = (Column("Domains", "string", ".spec.levels[*].domain"), AGE)


class ClusterTopology(Wire, frozen=True, kw_only=True):
    """Names the levels of a cluster's hardware, so that workloads can ask to sit close together."""

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
    """The levels, and who else keeps a topology of them."""
    status: TopologyStatus = TopologyStatus()
    """How the topology fares with the scheduler backends."""


class ClusterTopologyBinding(Wire, frozen=True, kw_only=True):
    """A ClusterTopology under upstream's later name. Of two with one name, the ClusterTopology is used."""

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
    """The levels, and who else keeps a topology of them."""
    status: TopologyStatus = TopologyStatus()
    """How the topology fares with the scheduler backends."""
