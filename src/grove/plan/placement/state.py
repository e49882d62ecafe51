"""What rounds of placement know about gangs, what they read, and what they return."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ObservedNode
from grove.plan.placement.demand import Demand
from grove.plan.placement.domain_members import NodesByDomain
from grove.plan.placement.release import Backlog
from grove.topology.placement.model import Amounts, Domain


class Hold(Struct, frozen=True):
    """Nodes that are held for a gang although they are full."""

    domain: Domain
    """The domain of the gang as a whole; empty if it may use any node. There is one hold for each."""
    nodes: Mapping[PodSlot, str]
    until: float
    """When it ends, and another gang may hold the domain."""


class Refused(Struct, frozen=True):
    """Pods of a released gang for which the scheduler reports no node."""

    since: float
    """When the first of them was observed, or the last pod of the gang that was bound since."""
    bound: int
    """How many pods of the gang were bound then."""


class GangState(Struct, frozen=True):
    """A gang that has pods without a node, and what was decided for it before."""

    demand: Demand
    decision: Decision | None = None
    fits_if_empty: bool = True
    """Of a gang that waits: whether it could fit once others have left."""
    retry_at: float = 0.0
    """When it is searched for with more work, after a search was stopped at its limit."""
    retried_at: float = 0.0
    """When it was last searched for with more work."""
    postponed: float = 0.0
    """Since when it is to be decided on, and earlier rounds had no work left for it; 0: it is not."""
    since: float = 0.0
    """When it began to wait for nodes."""
    decided_at: float = 0.0
    """When it was last decided on."""
    backlog: Backlog | None = None
    """Of a nominated gang: the pods that must be bound or gone before it is released."""
    stuck_since: float = 0.0
    """Of a released gang: since when the scheduler finds no node for one of its pods, and there is no room
    for the pod where it is nominated."""
    refused: Refused | None = None
    """Of a released gang: the pods that the scheduler refuses, also those for which there is room."""
    half_bound: bool = False
    """Of a released gang: whether some of its pods are bound."""
    failed: Mapping[Domain, float] = {}
    """The domains in which it could not be completed, and until when each is excluded."""
    failures: int = 0
    hold: Hold | None = None
    """The nodes that are held for it, until it is released."""
    hold_from: float = 0.0
    """When a hold is searched for again, after none was found."""
    holds: int = 0
    """How many times nodes were held for it since it began to wait: gangs take turns."""
    extras_refused: Demand | None = None
    """The demand whose pods beyond the minimum found no node when they were last searched for."""
    renewal: str = ""
    """What its nominations were last renewed for: a scheduler process, or a time."""
    renewed_at: float = 0.0

    @property
    def order(self) -> tuple[str, int, GangName]:
        """The oldest first. Of gangs that were created in the same second, those with shorter names: replica
        2 goes before replica 10, and a base gang before those that scale it out."""
        gang = self.demand.gang
        return self.demand.created or "~", len(gang.name), gang

    @property
    def took_long(self) -> bool:
        """Whether the last search for it was stopped at its limit, or had to wait for those of others."""
        return bool(self.retry_at or self.postponed)

    @property
    def waits(self) -> bool:
        return isinstance(self.decision, Waiting)

    @property
    def nominations(self) -> Mapping[PodSlot, str]:
        """The nodes that its pods are nominated to until they are released."""
        decision = self.decision
        if not isinstance(decision, Assignment) or decision.gated:
            return decision.nodes if decision is not None else {}
        if not decision.preempting:
            return {}
        return {slot: node for slot, node in decision.nodes.items() if slot not in decision.hosts}


class ObservedGang(Struct, frozen=True):
    """A gang, and what the watch of pods shows of it."""

    state: GangState
    requests: Mapping[str, Amounts] = {}
    """By the name of a pod, its requests as admitted."""
    nominations: Mapping[str, str] = {}
    """By the name of a pod, the node that it is nominated to."""
    bound: frozenset[str] = frozenset()
    """The names of bound pods."""
    stuck: bool = False
    """Whether the scheduler has found no node for a released pod, and no preemption has made room for it."""
    refused: bool = False
    """Whether the scheduler has found no node for a released pod, although there may be room for it where it
    is nominated: there are other reasons, such as a volume that is not bound."""
    victims_leave_until: float = 0.0
    """Until when pods are waited for that the scheduler has preempted for a released pod; 0: there are
    none."""
    in_flight: frozenset[str] = frozenset()
    """Of a nominated gang: the UIDs of other pods that the scheduler has not decided on yet and could bind to
    one of its nodes."""
    priority: int = 0
    may_preempt: bool = True
    has_quota: bool = False


class ClusterChanges(Struct, frozen=True, eq=False):
    """What a round reads; only changed nodes."""

    nodes: Mapping[str, ObservedNode]
    gangs: Sequence[ObservedGang]
    gone: Sequence[GangName] = ()
    """Gangs whose reservations end: all pods are bound, or they were deleted."""
    unbound: Sequence[Amounts] = ()
    """The requests of pods of others that have no node."""
    blocked_until: float | None = None
    """If nothing can be decided yet: when that is checked again."""
    freed: bool = True
    """Whether something may have become free since the last round. Computed by the round."""
    visible_after: float | None = None
    """After how many seconds a gang without required constraints is released although it does not fit, so
    that autoscalers see its pods; None: never."""
    hold_after: float = math.inf
    """After how many seconds nodes are held for a gang that waits."""
    domain_nodes: NodesByDomain = {}
    """By fabric domain of these gangs, the nodes of bound pods, also of other gangs."""
    assigned_in_domains: Mapping[GangName, NodesByDomain] = {}
    """The nodes of pods of these domains that are not bound yet, by gang."""
    scheduler: str | None = None
    """The scheduler process, which loses nominations when it ends; empty if it is not known. None: the
    scheduler keeps them."""
    work: int = timing.PLACEMENT_ROUND_WORK
    """How much the round searches: what is left is for the next round."""


class RoundResult(Struct, frozen=True):
    """The gangs whose state has changed, and when to run the next round at the latest."""

    changed: Mapping[GangName, GangState]
    next_at: float | None = None
    unexpected: Mapping[GangName, Exception] = {}
    """The gangs whose decision failed with an error that is a bug."""
