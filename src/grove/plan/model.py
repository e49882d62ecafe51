"""What a plan is: writes, statuses to publish, and when to look again. Data, carried out elsewhere."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.api.event_reasons import EventReason
from grove.api.intents import Intent, Target


class StatusUpdate(Struct, frozen=True):
    """A status as it should read, next to how it reads; published if the two differ.

    `observed` says which generation the draft is about: it becomes `observedGeneration` once every write of
    the plan has succeeded.
    """

    target: Target
    current: Any
    desired: Any
    observed_generation: int = 0
    resource_version: str = ""
    """The version of the object that this was read from. It is published on that version only: whoever sees
    late must not write back what was."""
    restart_pending: bool = False
    """It has had no nodes since we started it anew: what it had before, we took, and have said so."""


class UserError(Struct, frozen=True, gc=False):
    """Something that the plan cannot do and that only a person can mend."""

    clique: str
    """The PodClique on which it is told; empty: the group, or the set."""
    code: str
    message: str
    gang: str = ""
    """The PodGang on which it is an event; with a reason and without a PodGang, the event is on the set."""
    reason: str = ""
    group: str = ""
    """The PodCliqueScalingGroup on which it is told, if it is."""


class ReplicaSummary(Struct, frozen=True, gc=False):
    """What a replica contributes to the status of its set."""

    available: bool = False
    updated: bool = False
    cliques: int = 0
    updated_cliques: int = 0
    groups: int = 0
    updated_groups: int = 0
    generation_hash: str = ""
    """The template that this is about."""
    update_complete: bool = False
    """No update has anything left to do here: all is new, and answers or has never had a place."""
    scheduled_pods: int = 0
    breached: bool = False
    outdated: bool = False
    """It has pods of another template."""
    updating: int = 0
    """Cliques and groups that are being updated."""
    stalled: int = 0
    """Those of them that have come no further for longer than they may."""
    unconfigured_scheduler: str = ""
    """Its scheduler, if that is told nothing because the configuration does not list it."""


class PlannedEvent(Struct, frozen=True, gc=False):
    """Something worth telling the users of a set, once the write that makes it true has been done."""

    intent: str
    reason: EventReason
    note: str
    warning: bool = False


class Plan(Struct, frozen=True):
    """What to do about one key."""

    intents: tuple[Intent, ...] = ()
    status_updates: tuple[StatusUpdate, ...] = ()
    requeue_at: float | None = None
    summary: ReplicaSummary | None = None
    awaiting_placement: tuple[str, ...] = ()
    """Gangs that ask for a place."""
    errors: tuple[UserError, ...] = ()
    events: tuple[PlannedEvent, ...] = ()
    partial: bool = False
    """Whether the plan leaves out some of what the spec asks for."""
