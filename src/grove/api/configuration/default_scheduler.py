"""The `config` of the scheduler profile `default-scheduler`."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from grove.api.formats import durations
from grove.api.wire import Duration, Wire, defaulted

DEFAULT_PLACEMENT = "All"
"""The default of `placement`. The chart's templates have the same default, and a test compares them."""
NEVER = "Never"


class PlacementMode(StrEnum):
    """Which gangs the operator chooses nodes for."""

    ALL = "All"
    CONSTRAINED = "Constrained"
    OFF = "Off"


class SchedulerLease(Wire, frozen=True):
    """The Lease by which the schedulers of a cluster elect their leader."""

    namespace: str = defaulted("kube-system")
    """The namespace of the Lease."""
    name: str = defaulted("kube-scheduler")
    """The name of the Lease."""


class PlacementSettings(Struct, frozen=True):
    """How the operator places the gangs of the default scheduler; times in seconds."""

    mode: PlacementMode
    hold_after: float
    visible_after: float | None
    """None: gangs that fit nowhere are never released."""
    scheduler_lease: SchedulerLease

    @property
    def enabled(self) -> bool:
        """Whether the operator places any gang."""
        return self.mode is not PlacementMode.OFF


class DefaultSchedulerConfig(Wire, frozen=True):
    """The `config` of the scheduler profile `default-scheduler`."""

    gang_scheduling: bool = defaulted(False)
    """Whether each gang gets a PodGroup of Kubernetes; needs feature gates of Kubernetes."""
    placement: PlacementMode = defaulted(PlacementMode(DEFAULT_PLACEMENT))
    """Which gangs the operator chooses nodes for, so that each is placed whole: `All`; `Constrained`, those
    with a topology constraint or a fabric domain; or none, `Off`. Needs rights that the chart grants with
    it."""
    hold_after: Duration = defaulted("60s")
    """How long a gang waits before a domain that it would fit into is held for it."""
    visible_after: Duration = defaulted("30s")
    """How long a gang without required constraints that fits nowhere waits before its pods are released to
    the scheduler, so that cluster autoscalers see them; `Never`: it is not released."""
    scheduler_lease: SchedulerLease = SchedulerLease()
    """The Lease of the scheduler, by which its restarts are noticed."""

    @property
    def placement_settings(self) -> PlacementSettings:
        """The keys about placement, with parsed durations."""
        never = self.visible_after == NEVER
        return PlacementSettings(
            mode=self.placement,
            hold_after=durations.parse(self.hold_after).total_seconds(),
            visible_after=None if never else durations.parse(self.visible_after).total_seconds(),
            scheduler_lease=self.scheduler_lease,
        )
