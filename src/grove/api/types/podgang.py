"""PodGang: pods that are scheduled together or not at all. Schedulers read it; it records the membership."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec import field

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.kind import AGE, SCHEDULER, Column, Kind
from grove.api.wire import Int32, Wire, always


class GangPhase(StrEnum):
    """The phase of a gang."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"


class NamespacedName(Wire, frozen=True):
    """The namespace and name of an object."""

    namespace: str
    """The namespace of the object."""
    name: str
    """The name of the object."""


class PackConstraint(Wire, frozen=True):
    """A topology constraint in node label keys, resolved from the domains that the PodCliqueSet names."""

    required: str = ""
    """The node label whose value must be the same for the nodes of all pods."""
    preferred: str = ""
    """The node label whose value should be the same for the nodes of all pods."""


class GangTopologyConstraint(Wire, frozen=True):
    """The topology constraint of a gang or a part of it."""

    pack_constraint: PackConstraint | None = None
    """The node labels whose values the pods must, or should, have in common."""


class PodGroup(Wire, frozen=True):
    """The pods of one PodClique."""

    name: str
    """The name of the PodClique."""
    pod_references: tuple[NamespacedName, ...]
    """The pods. A pod is added here before it is created, and removed from here before it is deleted."""
    min_replicas: Int32
    """The number of pods that must be scheduled together. Further pods are scheduled as capacity allows."""
    topology_constraint: GangTopologyConstraint | None = None
    """The topology constraint of these pods."""


class TopologyConstraintGroup(Wire, frozen=True):
    """A topology constraint on several pod groups: those of one replica of a scaling group."""

    name: str
    """The name of the scaling group's replica."""
    pod_group_names: tuple[str, ...]
    """The pod groups that the constraint applies to."""
    topology_constraint: GangTopologyConstraint | None = None
    """The topology constraint of their pods."""


class PodGangSpec(Wire, frozen=True):
    """The pods that are scheduled together, and their topology constraints."""

    pod_groups: tuple[PodGroup, ...] = field(name="podgroups")
    """The pods, grouped by PodClique."""
    topology_constraint: GangTopologyConstraint | None = None
    """The topology constraint of all pods of the gang."""
    topology_constraint_group_configs: tuple[TopologyConstraintGroup, ...] = ()
    """Topology constraints on several pod groups each."""
    priority_class_name: str = ""
    """The PriorityClass of the gang."""
    reuse_reservation_ref: NamespacedName | None = None
    """An earlier gang whose nodes may be used again: a hint for schedulers."""


class PlacedUnit(Wire, frozen=True):
    """The domain of a part of the gang that has a topology constraint."""

    name: str
    """The name of the PodGang, of a replica of a scaling group, or of a PodClique."""
    topology_key: str
    """The node label of the constraint: the required one, or the preferred one if none is required."""
    domain: str
    """The value of that label on the nodes of the part; if they differ, the value on the nodes of most of its
    pods."""


class GangPlacement(Wire, frozen=True):
    """Where the gang is, and which of its constraints hold there."""

    topology_name: str = ""
    """The ClusterTopology or ClusterTopologyBinding whose levels the gang was placed by."""
    fallback: Int32 | None = None
    """The index of the fallback in `topologyConstraint.fallbacks` of the PodCliqueSet by which the gang was
    placed; absent if it was placed by the constraint itself."""
    units: tuple[PlacedUnit, ...] = ()
    """The domains of the gang, of its replicas of scaling groups and of its PodCliques, as far as these have
    constraints."""
    required_met: bool = always(False)
    """Whether each part is in one domain of its required level. It can become false later: when nodes get
    other labels."""
    preferred_met: bool = always(False)
    """Whether each part is in one domain of its preferred level."""


class PodGangStatus(Wire, frozen=True):
    """The observed state of the gang."""

    phase: str = always(GangPhase.PENDING.value)
    """The phase of the gang."""
    conditions: tuple[Condition, ...] = ()
    """The condition types are `Initialized`, `Scheduled`, `Ready`, `TopologyConstraintsEnforced`,
    `PlacementUnprotected`, `Unhealthy`
    and `DisruptionTarget`."""
    placement_score: float | None = None
    """How good the placement is; 1.0 is the best possible. Written by the operator for gangs that it places,
    and by schedulers for others."""
    placement: GangPlacement | None = None
    """Where the gang is, if the operator placed it."""


class PodGang(Wire, frozen=True, kw_only=True):
    """Pods of a PodCliqueSet that are scheduled together or not at all. Created by the operator, read by
    schedulers."""

    KIND: ClassVar = Kind(
        SCHEDULER,
        "PodGang",
        "podgangs",
        short_names=("pg",),
        columns=(Column("Phase", "string", ".status.phase"), AGE),
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGangSpec
    """The pods that are scheduled together, and their topology constraints."""
    status: PodGangStatus = PodGangStatus()
    """The observed state of the gang."""
