"""Types that several of our kinds use: autoscaling, rolling updates, resource sharing, last errors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from grove.api.types.raw_templates import MetricSpec, ResourceClaimTemplateSpec
from grove.api.wire import ATOMIC, Count, Duration, Time, Wire


class AutoScalingConfig(Wire, frozen=True):
    """Creates a HorizontalPodAutoscaler for the clique or scaling group that carries it."""

    max_replicas: Count
    """The upper limit of the autoscaler; not below `minReplicas`."""
    min_replicas: Count | None = None
    """The lower limit of the autoscaler: 0, or at least `minAvailable`. Defaults to `replicas`. 0 needs a
    metric of type `Object` or `External`, and Kubernetes 1.37 or its feature gate `HPAScaleToZero`."""
    metrics: Annotated[tuple[MetricSpec, ...], ATOMIC] = ()
    """The metrics to scale by (autoscaling/v2 MetricSpec). Without any, Kubernetes scales by 80 % CPU
    utilization."""


class RollingUpdate(Wire, frozen=True):
    """How fast a rolling update replaces the pods of a clique or the replicas of a scaling group. Not allowed
    with the update strategy `OnDelete`."""

    max_unavailable: Count | None = None
    """How many pods of a clique, or replicas of a scaling group, may be unavailable at once. Defaults to
    1."""
    progress_deadline: Duration | None = None
    """How long an update may make no progress before it is reported as `ProgressDeadlineExceeded`."""


class SharingScope(StrEnum):
    """Which pods share one ResourceClaim."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


class ResourceClaimTemplate(Wire, frozen=True):
    """A template for ResourceClaims that pods of the set share. Known by its name inside the set only."""

    name: str
    """The name that `resourceSharing` refers to; unique in the set."""
    template_spec: ResourceClaimTemplateSpec
    """A ResourceClaimTemplateSpec of resource.k8s.io/v1."""


class ResourceSharing(Wire, frozen=True):
    """Pods share the ResourceClaims created from a template, instead of one claim for each pod."""

    name: str
    """An entry of `resourceClaimTemplates`; if there is none of this name, a ResourceClaimTemplate object."""
    scope: SharingScope
    """`AllReplicas`: one claim for all replicas. `PerReplica`: one for each."""
    namespace: str = ""
    """The namespace of the ResourceClaimTemplate object; defaults to the namespace of the set. A template in
    another namespace is used only if its annotation `grove.io/shared-with-namespaces` names the namespace of
    the set."""


class CliqueFilter(Wire, frozen=True):
    """Which cliques of a scaling group get the claims."""

    child_clique_names: tuple[str, ...] = ()
    """The names of cliques of the group."""


class GroupResourceSharing(ResourceSharing, frozen=True):
    """Cliques of this scaling group share the ResourceClaims created from a template."""

    filter: CliqueFilter | None = None
    """Which cliques get the claims; all of them without a filter."""

    def reaches(self, clique: str) -> bool:
        """Whether a clique of the group gets the claims."""
        return self.filter is None or clique in self.filter.child_clique_names


class ChildFilter(Wire, frozen=True):
    """Which cliques and scaling groups of a set get the claims."""

    child_clique_names: tuple[str, ...] = ()
    """The names of cliques of the set."""
    child_scaling_group_names: tuple[str, ...] = ()
    """The names of scaling groups of the set."""


class SetResourceSharing(ResourceSharing, frozen=True):
    """Cliques and scaling groups of this set share the ResourceClaims created from a template."""

    filter: ChildFilter | None = None
    """Which cliques and groups get the claims; all of them without a filter."""

    def reaches(self, clique: str, group: str | None) -> bool:
        """Whether a clique, which may be in a group, gets the claims: its own name or its group's name is in
        either list, as upstream does it."""
        if self.filter is None:
            return True
        listed = {*self.filter.child_clique_names, *self.filter.child_scaling_group_names}
        return clique in listed or group in listed


class LastError(Wire, frozen=True):
    """An error that keeps the operator from reconciling the object or a part of it. It is removed once it no
    longer occurs."""

    code: str
    """A code for programs, such as `ERR_<VERB>_<RESOURCE>`."""
    description: str
    """What failed and why, for people."""
    observed_at: Time
    """When the error was observed."""
