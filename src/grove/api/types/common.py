"""What the parts of a set share: autoscaling, pace of updates, shared claims, recorded errors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from grove.api.types.raw_templates import MetricSpec, ResourceClaimTemplateSpec
from grove.api.wire import ATOMIC, Count, Duration, Time, Wire


class AutoScalingConfig(Wire, frozen=True):
    """Asks for a HorizontalPodAutoscaler on the part that carries it."""

    max_replicas: Count
    """The most replicas the autoscaler may ask for; not below `minReplicas`."""
    min_replicas: Count | None = None
    """The fewest replicas the autoscaler may ask for; not below `minAvailable`. Defaults to `replicas`."""
    metrics: Annotated[tuple[MetricSpec, ...], ATOMIC] = ()
    """What to scale by (autoscaling/v2 MetricSpec). Without any, Kubernetes scales by 80 % CPU use."""


class RollingUpdate(Wire, frozen=True):
    """How fast a part may be replaced while an update rolls. Not for the update strategy `OnDelete`."""

    max_unavailable: Count | None = None
    """How many units (pods of a clique, replicas of a group) may be missing at once. Defaults to 1."""
    progress_deadline: Duration | None = None
    """How long an update may stand still before it is reported as `ProgressDeadlineExceeded`."""


class SharingScope(StrEnum):
    """Who shares one claim."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


class ResourceClaimTemplate(Wire, frozen=True):
    """A template for claims that pods of the set share, known by name inside the set."""

    name: str
    """What `resourceSharing` calls it; unique in the set."""
    template_spec: ResourceClaimTemplateSpec
    """A ResourceClaimTemplateSpec of resource.k8s.io/v1."""


class ResourceSharing(Wire, frozen=True):
    """Pods of this part share the claims made from a template, instead of one claim for each pod."""

    name: str
    """A template of `resourceClaimTemplates`, or else a ResourceClaimTemplate object."""
    scope: SharingScope
    """`AllReplicas`: one claim for all replicas. `PerReplica`: one for each."""
    namespace: str = ""
    """Where the ResourceClaimTemplate object lives, if not in the namespace of the set. One of another
    namespace is used only if its annotation `grove.io/shared-with-namespaces` names the namespace of the set.
    """


class CliqueFilter(Wire, frozen=True):
    """Which children of a group get the claims."""

    child_clique_names: tuple[str, ...] = ()
    """Cliques of the group."""


class GroupResourceSharing(ResourceSharing, frozen=True):
    """Cliques of this group share the claims made from a template."""

    filter: CliqueFilter | None = None
    """Which children get the claims; all of them without a filter."""

    def reaches(self, clique: str) -> bool:
        """Whether a clique of the group gets the claims."""
        return self.filter is None or clique in self.filter.child_clique_names


class ChildFilter(Wire, frozen=True):
    """Which children of a set get the claims."""

    child_clique_names: tuple[str, ...] = ()
    """Cliques of the set."""
    child_scaling_group_names: tuple[str, ...] = ()
    """Scaling groups of the set."""


class SetResourceSharing(ResourceSharing, frozen=True):
    """Parts of this set share the claims made from a template."""

    filter: ChildFilter | None = None
    """Which children get the claims; all of them without a filter."""

    def reaches(self, clique: str, group: str | None) -> bool:
        """Whether a clique, which may be in a group, gets the claims: by its own name or by its group's, in
        whichever list. So it is upstream."""
        if self.filter is None:
            return True
        listed = {*self.filter.child_clique_names, *self.filter.child_scaling_group_names}
        return clique in listed or group in listed


class LastError(Wire, frozen=True):
    """An error that stopped the operator; gone once it got past it."""

    code: str
    """What failed, for programs: `ERR_<VERB>_<RESOURCE>`."""
    description: str
    """What failed and why, for people."""
    observed_at: Time
    """When it happened."""
