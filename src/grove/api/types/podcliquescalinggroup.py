"""PodCliqueScalingGroup: cliques that are scaled together, replica by replica."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.common import LastError
from grove.api.types.kind import AGE, GROVE, MIN_BREACHED, Column, Kind, ScaleSubresource
from grove.api.types.podclique import ZERO_OR_MIN_AVAILABLE
from grove.api.wire import Count, Int32, Int64, Time, Wire, always, defaulted


class PodCliqueScalingGroupSpec(Wire, frozen=True, kw_only=True):
    """How many replicas of the group there are, and how many of them are needed."""

    replicas: Count = defaulted(1)
    """How many copies of the member cliques. With 0 the group leaves its gang."""
    min_available: Count = defaulted(1)
    """How many replicas must be able to start together, and be available for the group to be so."""
    clique_names: tuple[str, ...]
    """The member cliques, by their names in the set."""


class ReplicasSelectedToUpdate(Wire, frozen=True):
    """Ready replicas that an update has taken down, one after another."""

    current: Int32
    """The index that is being replaced."""
    completed: tuple[Int32, ...] = ()
    """Indices that have been replaced."""


class PodCliqueScalingGroupUpdateProgress(Wire, frozen=True, kw_only=True):
    """An update of this group: running until `updateEndedAt` is set."""

    update_started_at: Time
    """When it began."""
    update_ended_at: Time | None = None
    """When it was done."""
    pod_clique_set_generation_hash: str
    """The set's hash that it leads to."""
    updated_pod_cliques_count: Int32 = defaulted(0)
    """Member cliques that have reached it."""
    total_pod_cliques_count: Int32 = defaulted(0)
    """Member cliques in all."""
    ready_replica_indices_selected_to_update: ReplicasSelectedToUpdate | None = None
    """Ready replicas that it has taken down."""


class PodCliqueScalingGroupStatus(Wire, frozen=True):
    """How the replicas of the group fare."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last acted on."""
    last_errors: tuple[LastError, ...] = ()
    """Errors that hold the group up."""
    replicas: Int32 = 0
    """Replicas asked for."""
    scheduled_replicas: Int32 = defaulted(0)
    """Replicas whose cliques all have enough scheduled pods."""
    available_replicas: Int32 = defaulted(0)
    """Scheduled replicas whose cliques all have enough ready pods."""
    updated_replicas: Int32 = defaulted(0)
    """Available replicas made from the latest template."""
    selector: str = ""
    """Selects the pods, for autoscalers."""
    conditions: tuple[Condition, ...] = ()
    """`MinAvailableBreached`, `GangTerminationInProgress`, `UpdateInProgress`."""
    current_pod_clique_set_generation_hash: str = ""
    """The set's hash that all member cliques have reached."""
    update_progress: PodCliqueScalingGroupUpdateProgress | None = None
    """The latest update."""


class PodCliqueScalingGroup(Wire, frozen=True, kw_only=True):
    """Cliques of a PodCliqueSet that are scaled together. The operator makes it."""

    KIND: ClassVar = Kind(
        GROVE,
        "PodCliqueScalingGroup",
        "podcliquescalinggroups",
        short_names=("pcsg",),
        scale=ScaleSubresource(".status.selector"),
        columns=(
            Column("MinAvail", "integer", ".spec.minAvailable"),
            Column("Replicas", "integer", ".spec.replicas"),
            Column("Available", "integer", ".status.availableReplicas"),
            Column("Scheduled", "integer", ".status.scheduledReplicas"),
            Column("Updated", "integer", ".status.updatedReplicas"),
            Column("PCLQs-Updated", "integer", ".status.updateProgress.updatedPodCliquesCount"),
            Column("PCLQs-Total", "integer", ".status.updateProgress.totalPodCliquesCount"),
            MIN_BREACHED,
            AGE,
        ),
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodCliqueScalingGroupSpec, ZERO_OR_MIN_AVAILABLE]
    """How many replicas there are, and how many are needed."""
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()
    """How the replicas fare."""
