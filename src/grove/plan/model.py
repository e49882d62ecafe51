"""The result of planning: intents, status updates, events, errors and the time to requeue at. Data only:
`grove.operator` executes and publishes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from grove.api.event_reasons import EventReporter
from grove.api.intents import Intent, ObjectRef, Target
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.fabrics.domain_pods import DomainPodCount
from grove.plan.placement.demand import Demand
from grove.reasons.rollup import NOTHING, Rollup


class PlannedEvent(Struct, frozen=True, gc=False):
    """A Kubernetes Event of a plan.

    With an `intent`, it is emitted once that write has succeeded. In `StatusUpdate.events`, once that status
    is written. Otherwise it describes a state that lasts, and is emitted when it appears in the plans of the
    key.
    """

    regarding: ObjectRef
    """Its UID is a deferred value if the plan creates the object."""
    reason: str
    note: str
    warning: bool = False
    intent: str = ""
    """The id of the write that makes it true."""
    on_failure: bool = False
    """Emitted if that write fails, instead: the note is followed by the error."""
    unless: str = ""
    """The id of a write whose own event says the same: if both writes succeed, only that one is emitted."""
    together: str = ""
    """The note of several events, if those of the plan with the same object, reason and text are emitted as
    one. `{count}` in it is how many they are, and the names of what was written follow. Empty: the event is
    emitted on its own."""
    identity: str = ""
    """What distinguishes it from events with the same object and reason; empty: its note."""
    reporter: str = EventReporter.SET.value


class StatusUpdate(Struct, frozen=True):
    """The desired status of an object next to its current one; published if the two differ.

    `observed_generation` is the generation that the status describes: it becomes `observedGeneration` once
    every write of the plan has succeeded.
    """

    target: Target
    current: Any
    desired: Any
    observed_generation: int = 0
    resource_version: str = ""
    """The version of the object that the status was computed from. The update is published on that version
    only: an operator with a stale cache must not overwrite a newer status."""
    events: tuple[PlannedEvent, ...] = ()
    """Emitted once the status is written: of two leaders, only one succeeds with the write."""
    updating: bool = False
    """Whether an update replaces pods of the object: that fewer of them are ready is expected, and not
    urgent."""


class UserError(Struct, frozen=True, gc=False):
    """A problem that the plan cannot solve and that only a user can."""

    code: str
    message: str
    regarding: ObjectRef | None = None
    """The PodClique or PodCliqueScalingGroup that reports it in `lastErrors`; None: the set does."""

    def reported_in(self, last_errors: Iterable[LastError]) -> bool:
        """Whether a status has the error already, so that this or a former leader has emitted its event."""
        return any(error.code == self.code and self.message in error.description for error in last_errors)


class ReplicaSummary(Struct, frozen=True, gc=False):
    """What a replica contributes to the status of its set."""

    available: bool = False
    ready: bool = False
    """Every pod is there and ready, also those above `minAvailable`."""
    updated: bool = False
    cliques: int = 0
    updated_cliques: int = 0
    groups: int = 0
    updated_groups: int = 0
    generation_hash: str = ""
    """The revision of the template that the summary describes."""
    update_complete: bool = False
    """No update has anything left to do here: all pods are of the current template, and the replica is
    available or has never been scheduled."""
    scheduled_pods: int = 0
    breached: bool = False
    outdated: bool = False
    """The replica has pods of another template."""
    updating: int = 0
    """Cliques and groups that are being updated."""
    stalled: int = 0
    """Those of them that made no progress within `progressDeadline`."""
    unconfigured_scheduler: str = ""
    """The name of its scheduler if the configuration does not list that scheduler; empty otherwise."""
    enforced: Condition | None = None
    """Whether the topology constraints of its gangs are enforced; None if they have none."""
    waiting: Rollup = NOTHING
    """What its gangs wait for."""
    channel_shortage: str = ""
    """Why a gang of it cannot be scheduled: its pods need more fabric channels than there are."""
    domain_pods: tuple[DomainPodCount, ...] = ()
    """Its pods in fabric domains, by domain."""


class ReplicaReport(Struct, frozen=True, gc=False):
    """The result of the latest reconcile of a replica: its summary and its errors."""

    generation: int
    """The generation of the set if everything that it asks for was done; 0 if something is left."""
    summary: ReplicaSummary
    errors: tuple[LastError, ...] = ()


class Plan(Struct, frozen=True):
    """The plan for one key."""

    intents: tuple[Intent, ...] = ()
    status_updates: tuple[StatusUpdate, ...] = ()
    events: tuple[PlannedEvent, ...] = ()
    errors: tuple[UserError, ...] = ()
    requeue_at: float | None = None
    report: Any = None
    """What other keys read: a replica reports a `ReplicaSummary` to its set."""
    placement_demands: tuple[Demand, ...] = ()
    """The gangs that have pods without a node, and are placed by the operator."""
    demands_complete: bool = True
    """Whether these are all such gangs: the demand of some may depend on what is not listed yet."""
    partial: bool = False
    """Whether the plan omits some of what the spec asks for."""
    awaits_round: bool = False
    """Whether nothing is written until a round of placement has decided; statuses are as they were."""
    only_statuses_left: bool = False
    """Whether nothing but statuses is left to write while its pods get their nodes and become ready."""
