"""PodClique: pods of one role, created from one template."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.common import AutoScalingConfig, LastError
from grove.api.types.kind import AGE, GROVE, MIN_BREACHED, Column, Kind, ScaleSubresource
from grove.api.types.raw_templates import PodSpec
from grove.api.wire import Count, Int32, Int64, Rule, Time, Wire, always, checked, defaulted

ZERO_OR_MIN_AVAILABLE = checked(
    Rule(
        "self.replicas == 0 || !has(self.minAvailable) || self.replicas >= self.minAvailable",
        "replicas must be 0 or at least minAvailable",
        "FieldValueInvalid",
        ".replicas",
    )
)
"""Between 0 and minAvailable a clique or group could never become available: the API server rejects such a
count from every client, on `/scale` too."""


class PodCliqueSpec(Wire, frozen=True, kw_only=True):
    """The pods of one role: their spec, how many there are, and how many of them are needed."""

    role_name: str = ""
    """The role of these pods, unique in the set. Immutable. Defaults to the name of the clique."""
    pod_spec: PodSpec
    """The spec of the pods, used as written. `kubectl explain pod.spec` explains its fields."""
    replicas: Count = defaulted(1)
    """The number of pods. In a PodCliqueSet it is the initial value: it is read when the PodClique is
    created, and later changes come from scaling the PodClique. With 0 the clique is not part of its gang."""
    min_available: Count | None = None
    """The number of pods that are scheduled together or not at all, and that must be ready for the clique to
    be available. Immutable. Defaults to `replicas`."""
    starts_after: tuple[str, ...] = ()
    """The cliques that must be ready before the pods of this clique start, with startup type
    `CliqueStartupTypeExplicit`. Immutable. On PodClique objects: names of PodCliques."""
    auto_scaling_config: AutoScalingConfig | None = None
    """Creates a HorizontalPodAutoscaler for the clique. Not allowed on cliques of a scaling group."""


class PodsSelectedToUpdate(Wire, frozen=True):
    """The ready pods that an update has deleted, one after another."""

    current: str
    """The name of the pod that is being replaced."""
    completed: tuple[str, ...] = ()
    """The names of the pods that have been replaced."""


class PodCliqueUpdateProgress(Wire, frozen=True, kw_only=True):
    """An update of this clique: in progress until `updateEndedAt` is set."""

    update_started_at: Time | None = None
    """When the update started."""
    update_ended_at: Time | None = None
    """When the update was complete."""
    pod_clique_set_generation_hash: str
    """The generation hash of the set that the update leads to."""
    pod_template_hash: str
    """The pod template hash that the update leads to."""
    ready_pods_selected_to_update: PodsSelectedToUpdate | None = None
    """The ready pods that the update has deleted."""


class PodCliqueStatus(Wire, frozen=True):
    """The observed state of the clique's pods."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last reconciled."""
    last_errors: tuple[LastError, ...] = ()
    """Errors that keep the operator from reconciling the clique."""
    replicas: Int32 = 0
    """The number of pods, without those that are terminating, succeeded or failed."""
    ready_replicas: Int32 = defaulted(0)
    """The number of pods that are ready."""
    updated_replicas: Int32 = defaulted(0)
    """The number of pods created from the latest template."""
    schedule_gated_replicas: Int32 = defaulted(0)
    """The number of pods with a scheduling gate: Grove's, which is removed once the pod's gang can be
    scheduled, or one of the template."""
    scheduled_replicas: Int32 = defaulted(0)
    """The number of pods that are assigned to a node."""
    hpa_pod_selector: str = ""
    """The label selector of the pods, for autoscalers. Only on cliques that are not in a scaling group."""
    conditions: tuple[Condition, ...] = ()
    """The condition types are `PodCliqueScheduled`, `WasScheduled`, `MinAvailableBreached` and
    `UpdateInProgress`."""
    current_pod_clique_set_generation_hash: str = ""
    """The generation hash of the set that all pods are at."""
    current_pod_template_hash: str = ""
    """The pod template hash that all pods are at."""
    update_progress: PodCliqueUpdateProgress | None = None
    """The latest update, in progress or complete."""


class PodClique(Wire, frozen=True, kw_only=True):
    """Pods of one role, created from one template: a clique of a PodCliqueSet. Created by the operator."""

    KIND: ClassVar = Kind(
        GROVE,
        "PodClique",
        "podcliques",
        short_names=("pclq",),
        scale=ScaleSubresource(".status.hpaPodSelector"),
        columns=(
            Column("MinAvail", "integer", ".spec.minAvailable"),
            Column("Replicas", "integer", ".spec.replicas"),
            Column("Ready", "integer", ".status.readyReplicas"),
            Column("Scheduled", "integer", ".status.scheduledReplicas"),
            Column("Updated", "integer", ".status.updatedReplicas"),
            Column("Gated", "integer", ".status.scheduleGatedReplicas", priority=1),
            MIN_BREACHED,
            AGE,
        ),
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodCliqueSpec, ZERO_OR_MIN_AVAILABLE]
    """The spec of the pods, and how many there are."""
    status: PodCliqueStatus = PodCliqueStatus()
    """The observed state of the pods."""
