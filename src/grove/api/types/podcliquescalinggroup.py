"""PodCliqueScalingGroup: cliques that are scaled together, replica by replica."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.common import LastError
from grove.api.types.kind import AGE, GROVE, MIN_BREACHED, Column, Kind, ScaleSubresource
from grove.api.types.podclique import ZERO_OR_MIN_AVAILABLE
from grove.api.wire import Count, Int32, Int64, Time, Wire, always, defaulted


class PodCliqueScalingGroupSpec(Wire, frozen=True, kw_only=True):
    """The replicas of the group: how many there are, and how many of them are needed."""

    replicas: Count = defaulted(1)
    """The number of copies of the member cliques. With 0 the group is not part of the replica's gang."""
    min_available: Count = defaulted(1)
    """The number of replicas that are scheduled together or not at all, and that must be available for the
    group to be available."""
    clique_names: tuple[str, ...]
    """The member cliques, by their names in the PodCliqueSet."""


class ReplicasSelectedToUpdate(Wire, frozen=True):
    """The ready replicas whose pods an update has deleted, one replica after another."""

    current: Int32
    """The index of the replica that is being replaced."""
    completed: tuple[Int32, ...] = ()
    """The indices of the replicas that have been replaced."""


class PodCliqueScalingGroupUpdateProgress(Wire, frozen=True, kw_only=True):
    """An update of this group: in progress until `updateEndedAt` is set."""

    update_started_at: Time
    """When the update started."""
    update_ended_at: Time | None = None
    """When the update was complete."""
    pod_clique_set_generation_hash: str
    """The generation hash of the set that the update leads to."""
    updated_pod_cliques_count: Int32 = defaulted(0)
    """The number of member PodCliques that are at this hash."""
    total_pod_cliques_count: Int32 = defaulted(0)
    """The number of member PodCliques."""
    ready_replica_indices_selected_to_update: ReplicasSelectedToUpdate | None = None
    """The ready replicas whose pods the update has deleted."""


class PodCliqueScalingGroupStatus(Wire, frozen=True):
    """The observed state of the group's replicas."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last reconciled."""
    last_errors: tuple[LastError, ...] = ()
    """Errors that keep the operator from reconciling the group."""
    replicas: Int32 = 0
    """The number of replicas that the spec asks for."""
    scheduled_replicas: Int32 = defaulted(0)
    """The number of replicas whose cliques all have at least `minAvailable` scheduled pods."""
    available_replicas: Int32 = defaulted(0)
    """The number of scheduled replicas whose cliques all have at least `minAvailable` ready pods."""
    updated_replicas: Int32 = defaulted(0)
    """The number of available replicas created from the latest template."""
    selector: str = ""
    """The label selector of the pods, for autoscalers."""
    conditions: tuple[Condition, ...] = ()
    """The condition types are `MinAvailableBreached`, `GangTerminationInProgress` and `UpdateInProgress`."""
    current_pod_clique_set_generation_hash: str = ""
    """The generation hash of the set that all member cliques are at."""
    update_progress: PodCliqueScalingGroupUpdateProgress | None = None
    """The latest update, in progress or complete."""


class PodCliqueScalingGroup(Wire, frozen=True, kw_only=True):
    """Cliques of a PodCliqueSet that are scaled together. Created by the operator."""

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
    """The number of replicas, and how many of them are needed."""
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()
    """The observed state of the replicas."""
