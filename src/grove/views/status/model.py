"""What `grove status` says about an object. Data only; it is also what `-o json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from grove.explanation.model import ObjectRef, ReasonView
from grove.views.claim_view import View
from grove.views.operator_view import OperatorView
from grove.views.set_view import FabricDomainView


class Verdict(StrEnum):
    """Whether a workload is healthy."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    """It starts, is updated or recovers, and nothing is known that stops it."""
    TERMINATING = "Terminating"
    WAITING = "Waiting"
    """Pods wait for something that does not come by itself: nodes, a quota, a user."""
    DEGRADED = "Degraded"
    """Something has failed: containers, an update, a domain, a constraint, a write of the operator."""
    UNKNOWN = "Unknown"
    """No operator leads: statuses are of the time when the last one did."""


class ReplicaCounts(View, frozen=True):
    """The replicas of a set."""

    desired: int
    available: int
    updated: int


class RolloutView(View, frozen=True):
    """The latest update of a set."""

    state: str
    """`Complete`, `Progressing`, `Paused` or `DeadlineExceeded`."""
    updated_replicas: int
    replicas: int
    updated_cliques: int
    cliques: int
    """Those outside of groups."""
    updated_groups: int
    groups: int
    updating: tuple[int, ...] = ()
    """Indices of the replicas that are being updated."""
    started: str | None = None
    ended: str | None = None


class ConstraintsView(View, frozen=True):
    """The topology constraints of a set. `enforced` is null before that is known."""

    topology: str
    required: str
    enforced: bool | None
    reason: str = ""
    message: str = ""


class RoleView(View, frozen=True):
    """All pods of one clique of the template, in all replicas."""

    name: str
    ready: int
    pods: int
    updated: int


class GangStatusView(View, frozen=True):
    """A gang: of its `pods`, `ready` are ready."""

    name: str
    phase: str
    ready: int
    pods: int
    score: float | None = None
    domains: Mapping[str, str] = {}
    """By the name of the gang, of a group replica or of a clique, the domain that it is in."""
    enforced: bool | None = None
    """Whether its constraints hold; null if it has none, or before that is known."""
    fallback: int | None = None
    """The fallback of the constraint by which it was placed."""
    unhealthy: str = ""


class ErrorView(View, frozen=True):
    """An error of the operator that has not been overcome yet."""

    about: ObjectRef
    code: str
    description: str
    observed_at: str


class ComponentView(View, frozen=True):
    """A component of a DynamoGraphDeployment."""

    name: str
    kind: str
    ready: int
    replicas: int
    updated: int


class GraphView(View, frozen=True):
    """A DynamoGraphDeployment, as its status describes it."""

    name: str
    state: str
    ready: bool | None
    message: str = ""
    components: tuple[ComponentView, ...] = ()


class StatusView(View, frozen=True):
    """Everything about one object."""

    about: ObjectRef
    verdict: Verdict
    summary: str
    operator: OperatorView | None = None
    """Null if the user may not list Leases."""
    graph: GraphView | None = None
    replicas: ReplicaCounts | None = None
    rollout: RolloutView | None = None
    constraints: ConstraintsView | None = None
    roles: tuple[RoleView, ...] = ()
    gangs: tuple[GangStatusView, ...] = ()
    fabric_domains: tuple[FabricDomainView, ...] = ()
    waits_for: tuple[ReasonView, ...] = ()
    errors: tuple[ErrorView, ...] = ()
