"""PodGang: the pods that must start together; what schedulers read, and the ledger of its members."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec import field

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.kind import AGE, SCHEDULER, Column, Kind
from grove.api.wire import Int32, Wire, always


class GangPhase(StrEnum):
    """Where a gang is in its life."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"


class NamespacedName(Wire, frozen=True):
    """An object's namespace and name."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name."""


class PackConstraint(Wire, frozen=True):
    """How close together, in node label keys: domains have been translated."""

    required: str = ""
    """The label key whose value all pods must share."""
    preferred: str = ""
    """The label key whose value all pods should share."""


class GangTopologyConstraint(Wire, frozen=True):
    """How close together the pods it applies to must sit."""

    pack_constraint: PackConstraint | None = None
    """Label keys whose values the pods must or should share."""


class PodGroup(Wire, frozen=True):
    """The pods of one PodClique."""

    name: str
    """The PodClique."""
    pod_references: tuple[NamespacedName, ...]
    """Its pods. A pod is named here before it is made, and removed from here before it is deleted."""
    min_replicas: Int32
    """How many of them must be placed together; more are placed as room allows."""
    topology_constraint: GangTopologyConstraint | None = None
    """How close together these pods must sit."""


class TopologyConstraintGroup(Wire, frozen=True):
    """A constraint on some of the pod groups: one replica of a scaling group."""

    name: str
    """The replica of the scaling group."""
    pod_group_names: tuple[str, ...]
    """The pod groups it applies to."""
    topology_constraint: GangTopologyConstraint | None = None
    """How close together their pods must sit."""


class PodGangSpec(Wire, frozen=True):
    """Which pods must start together, and how close together."""

    pod_groups: tuple[PodGroup, ...] = field(name="podgroups")
    """The pods, by PodClique."""
    topology_constraint: GangTopologyConstraint | None = None
    """How close together all pods of the gang must sit."""
    topology_constraint_group_configs: tuple[TopologyConstraintGroup, ...] = ()
    """Constraints on some of the pod groups."""
    priority_class_name: str = ""
    """The PriorityClass of the gang."""
    reuse_reservation_ref: NamespacedName | None = None
    """An earlier gang whose place may be used again: a hint for schedulers."""


class PodGangStatus(Wire, frozen=True):
    """How far the gang has come."""

    phase: str = always(GangPhase.PENDING.value)
    """Where it is in its life."""
    conditions: tuple[Condition, ...] = ()
    """`Initialized`, `Scheduled`, `Ready`, `Unhealthy`, `DisruptionTarget`."""
    placement_score: float | None = None
    """How good the placement is, 1.0 being the best possible: for schedulers to fill in."""


class PodGang(Wire, frozen=True, kw_only=True):
    """Pods of a PodCliqueSet that must start together. The operator makes it, schedulers read it."""

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
    """Which pods must start together, and how close together."""
    status: PodGangStatus = PodGangStatus()
    """How far the gang has come."""
