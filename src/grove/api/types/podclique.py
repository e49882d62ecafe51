"""PodClique: pods of one role, made from one template."""

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
"""Between 0 and minAvailable a part could never run: refused, whoever scales, through `/scale` too."""


class PodCliqueSpec(Wire, frozen=True, kw_only=True):
    """What pods of one role look like, how many there are, and how many of them are needed."""

    role_name: str = ""
    """The role of these pods, unique in the set. Immutable. Defaults to the name of the clique."""
    pod_spec: PodSpec
    """The pods' spec, handed on as written. `kubectl explain pod.spec` explains its fields."""
    replicas: Count = defaulted(1)
    """How many pods. Read when the clique is made; from then on whoever scales the clique decides. With 0 the
    clique leaves its gang."""
    min_available: Count | None = None
    """How many pods must be able to start together, and be ready for the clique to be available. Immutable.
    Defaults to `replicas`."""
    starts_after: tuple[str, ...] = ()
    """Cliques that must be ready first, with start-up type `CliqueStartupTypeExplicit`. Immutable. On
    PodClique objects: names of PodCliques."""
    auto_scaling_config: AutoScalingConfig | None = None
    """Asks for a HorizontalPodAutoscaler. Not for cliques of a scaling group."""


class PodsSelectedToUpdate(Wire, frozen=True):
    """Ready pods that an update has taken down, one after another."""

    current: str
    """The pod that is being replaced."""
    completed: tuple[str, ...] = ()
    """Pods that have been replaced."""


class PodCliqueUpdateProgress(Wire, frozen=True, kw_only=True):
    """An update of this clique: running until `updateEndedAt` is set."""

    update_started_at: Time | None = None
    """When it began."""
    update_ended_at: Time | None = None
    """When it was done."""
    pod_clique_set_generation_hash: str
    """The set's hash that it leads to."""
    pod_template_hash: str
    """The pod template's hash that it leads to."""
    ready_pods_selected_to_update: PodsSelectedToUpdate | None = None
    """Ready pods that it has taken down."""


class PodCliqueStatus(Wire, frozen=True):
    """How the pods of the clique fare."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last acted on."""
    last_errors: tuple[LastError, ...] = ()
    """Errors that hold the clique up."""
    replicas: Int32 = 0
    """Pods that are there: not being deleted, and not at their end."""
    ready_replicas: Int32 = defaulted(0)
    """Pods that are ready."""
    updated_replicas: Int32 = defaulted(0)
    """Pods made from the latest template."""
    schedule_gated_replicas: Int32 = defaulted(0)
    """Pods behind a scheduling gate: they wait for their gang, or for who opens a gate of the template."""
    scheduled_replicas: Int32 = defaulted(0)
    """Pods that have a node."""
    hpa_pod_selector: str = ""
    """Selects the pods, for autoscalers. Only on cliques that are scaled by themselves."""
    conditions: tuple[Condition, ...] = ()
    """`PodCliqueScheduled`, `WasScheduled`, `MinAvailableBreached`, `UpdateInProgress`."""
    current_pod_clique_set_generation_hash: str = ""
    """The set's hash that all pods have reached."""
    current_pod_template_hash: str = ""
    """The pod template's hash that all pods have reached."""
    update_progress: PodCliqueUpdateProgress | None = None
    """The latest update."""


class PodClique(Wire, frozen=True, kw_only=True):
    """Pods of one role, made from one template: a clique of a PodCliqueSet. The operator makes it."""

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
    """What the pods look like, and how many there are."""
    status: PodCliqueStatus = PodCliqueStatus()
    """How the pods fare."""
