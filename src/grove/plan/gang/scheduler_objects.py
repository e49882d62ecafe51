"""Plans the scheduler's own object for each gang of a replica, written after the gang and before the pods.

A gang whose object cannot be built gets no pods: they would be scheduled one by one, or never. Neither does a
gang whose object was stored without its topology constraints: they would be scheduled anywhere. If the
configuration does not list the scheduler of a replica, nothing waits, and an error is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.error_codes import ErrorCode
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Create, Patch
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.plan.desired.expand import Gang
from grove.plan.gang.obsolete_objects import ObsoleteObjects
from grove.plan.gang.scheduler_object_patch import repair_patch
from grove.plan.gang.scheduler_selection import scheduler_of, unconfigured_message
from grove.plan.members.pod_state import alive, controller_uid
from grove.plan.model import PlannedEvent, UserError
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import child_reference, create, reference
from grove.reasons.codes import ReasonCode
from grove.reasons.model import WaitReason
from grove.reasons.scheduler import scheduler_reason
from grove.schedulers.backend import (
    Body,
    GangRequest,
    PodAdditions,
    SchedulerBackend,
    SchedulerObject,
    SchedulingSpec,
    UnsupportedGang,
)

_CODE = ErrorCode.SYNC_POD_GROUP
_NO_ADDITIONS = PodAdditions()


class _SchedulerError(Struct, frozen=True):
    message: str
    event: EventReason = EventReason.SCHEDULER_SYNC_FAILED


class SchedulerObjects:
    """Plans the scheduler objects of one replica. A third-party backend may raise any exception."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._backend, self._existing = snapshot.scheduler, snapshot.scheduler_objects
        self._scheduling_spec = SchedulingSpec(snapshot.workload.metadata, snapshot.workload.spec.template)
        self._topology, self._kind_problem = snapshot.topology, snapshot.kind_problem
        self._errors: dict[str, _SchedulerError] = {}
        self._names: dict[str, str] = {}
        """By gang, the name of its scheduler object."""
        self._created: set[str] = set()
        """The gangs whose objects this plan creates."""
        self._compared_later: set[str] = set()
        """Those of them whose constraints the API server may drop."""
        self._dropped: dict[str, str] = {}
        """By gang, which constraints its object was stored without, and what to do."""
        kind = self._backend.gang_object_kind if self._backend is not None else None
        self.obsolete = ObsoleteObjects(kind, snapshot.pods)
        self._scheduler_reasons: dict[str, WaitReason] = {}
        """By gang, the scheduler's own reason."""
        self.pending_reasons: dict[str, str] = {}
        """By gang, why it waits for nodes, in one line: the scheduler's own message if there is one."""
        self.minimum_first = self._backend is not None and self._backend.minimum_first
        """Whether pods above a gang's minimum wait until the minimum is scheduled."""
        self.gates_hold_group = self._backend is not None and self._backend.gates_hold_group
        """Whether these pods are not created before, instead of being gated."""
        self.scheduler = self._backend.name if self._backend else _requested_scheduler(snapshot)
        configured = self._backend is not None or self.scheduler == DEFAULT_SCHEDULER
        self.unconfigured_scheduler = "" if configured else self.scheduler
        """The name of the scheduler if the configuration does not list it; empty otherwise."""
        self.unconfigured_message = (
            "" if configured else unconfigured_message(self.scheduler, snapshot.workload)
        )
        """The error of such a replica; empty otherwise."""

    def plan_object(self, gang: Body, uid: str) -> Create | Patch | None:
        """The write of a gang's scheduler object; None if it is up to date or cannot be built."""
        if self._backend is None:
            if self.unconfigured_message:
                self.pending_reasons[gang["metadata"]["name"]] = self.unconfigured_message
            return None
        kind = self._backend.gang_object_kind
        if self._existing is None and kind is not None:
            why = f"cannot list {kind.plural}.{kind.group}: allow the operator to list and watch them"
            self._fail(gang, _SchedulerError(self._kind_problem or why))
            return None
        try:
            return self._plan_object(self._backend, gang, uid)
        except Exception as exception:
            self._fail(gang, _error_of(self._backend, exception))
            return None

    def _plan_object(self, backend: SchedulerBackend, gang: Body, uid: str) -> Create | Patch | None:
        # An object that another gang owns is left out: the create fails and reports the conflict.
        owned = {
            name: each
            for name, each in (self._existing or {}).items()
            if controller_uid(each.metadata) == uid
        }
        gang_name = gang["metadata"]["name"]
        request = GangRequest(
            gang=gang,
            uid=uid,
            scheduling_spec=self._scheduling_spec,
            topology=self._topology_name(),
            pods=self._living_pods.get(gang_name, ()),
            objects=owned,
            kind_problem=self._kind_problem,
        )
        name = self._names[gang_name] = backend.gang_object_name(request)
        if (found := owned.get(name)) is not None:
            self._read_status(backend, gang_name, found)
        request = replace(request, name=name, found=found)
        body = backend.gang_object(request)
        self.obsolete.collect(backend, request)
        if found is not None and (dropped := backend.lost_constraints(gang, found.spec)):
            self._on_dropped_constraints(gang, found, dropped, request.pods)
        if body is None:
            return None
        if found is not None:
            of_set = self._snapshot.workload.metadata.annotations
            return repair_patch(body, found, of_set, self.annotation_prefixes)
        self._created.add(gang_name)
        if backend.lost_constraints(gang, {}):
            self._compared_later.add(gang_name)
        return create(body)

    def _on_dropped_constraints(
        self, gang: Body, found: SchedulerObject, dropped: str, pods: tuple[Pod, ...]
    ) -> None:
        """A gang whose pods have nodes, or may get some at any moment, keeps them, and gets new pods near
        them. Any other gang gets no pods."""
        gang_name = gang["metadata"]["name"]
        if any(pod.spec.node_name or not pod.spec.scheduling_gates for pod in pods):
            self._dropped[gang_name] = dropped
            return
        held = self._dropped[gang_name] = f"its pods wait: {dropped}"
        self._fail(gang, _SchedulerError(held, EventReason.CONSTRAINTS_NOT_ENFORCED))
        if not pods:
            self.obsolete.create_again(found)

    @cached_property
    def _living_pods(self) -> Mapping[str, tuple[Pod, ...]]:
        """By the gang that their label names."""
        by_gang: dict[str, list[Pod]] = {}
        for pod in filter(alive, self._snapshot.pods):
            by_gang.setdefault(pod.metadata.labels.get(labels.GANG, ""), []).append(pod)
        return {gang: tuple(pods) for gang, pods in by_gang.items()}

    def _read_status(self, backend: SchedulerBackend, gang: str, found: SchedulerObject) -> None:
        with suppress(Exception):  # the message is optional
            if text := backend.waiting_reason(found):
                reason = self._scheduler_reasons[gang] = scheduler_reason(text, backend.name)
                self.pending_reasons[gang] = reason.message

    def annotations(self) -> Mapping[str, str]:
        """The annotations of gangs for their scheduler; empty if the backend fails."""
        try:
            return dict(self._backend.gang_annotations) if self._backend is not None else {}
        except Exception:
            return {}

    @cached_property
    def annotation_prefixes(self) -> tuple[str, ...]:
        """How the keys of annotations begin that the scheduler reads: any key, if it is not known which."""
        if self._backend is None:
            return ("",)
        try:
            return self._backend.annotation_prefixes
        except Exception:
            return ("",)

    @property
    def is_unmanaged(self) -> bool:
        """Whether the operator runs without scheduler backends."""
        return self._backend is None and not self.unconfigured_scheduler

    @cached_property
    def unsupported_constraints(self) -> str:
        """Which constraints of the set its scheduler does not support; empty if it supports all."""
        if self._backend is None:
            return ""
        try:
            return "; ".join(self._backend.unsupported_constraints(self._scheduling_spec))
        except Exception as exception:
            return _error_of(self._backend, exception).message

    def dropped_constraints(self, gang: str) -> str:
        """That the API server stored the object of the gang without constraints; empty if it did not."""
        return self._dropped.get(gang, "")

    def error(self, gang: str) -> str:
        """Why the scheduler object of the gang cannot be written; empty if it can."""
        return self._errors[gang].message if gang in self._errors else self._kind_problem

    def wait_reasons(self, gang: str) -> Iterator[WaitReason]:
        """Why the pods of a gang wait: its object cannot be written, or what the scheduler says."""
        if self.unconfigured_message:
            yield WaitReason(ReasonCode.SCHEDULER_NOT_CONFIGURED, self.unconfigured_message)
        if gang in self._errors and gang in self._dropped:
            yield WaitReason(ReasonCode.CONSTRAINTS_DROPPED, self._dropped[gang])
        elif gang in self._errors:
            yield WaitReason(ReasonCode.SCHEDULER_OBJECT_FAILED, self._errors[gang].message)
        if gang in self._scheduler_reasons:
            yield self._scheduler_reasons[gang]

    def awaits_object(self, gang: str) -> bool:
        """Whether the object of the gang does not exist yet, and is created by this plan."""
        return gang in self._created and not self._kind_problem

    def holds_pods(self, gang: str) -> bool:
        """Whether the gang gets no new pods yet: its scheduler object cannot be written, or is not stored
        with all constraints."""
        return gang in self._errors or gang in self._compared_later

    def holds_gates(self, gang: str) -> bool:
        """Whether gated pods of the gang would be scheduled without its constraints."""
        return gang in self._errors and gang in self._dropped

    @property
    def holds_new_gangs(self) -> bool:
        """Whether pods wait until the objects that this plan creates are compared."""
        return bool(self._compared_later)

    def pod_additions(self, gang: Body, clique: str, members: Iterable[Pod | None]) -> PodAdditions | None:
        """The additions of the backend to new pods of a clique; None if they cannot be computed. `members`
        are all pods of the gang, None for those that are not created yet."""
        backend = self._backend
        if backend is None:
            return _NO_ADDITIONS
        try:
            gang_name = gang["metadata"]["name"]
            name = self._names[gang_name]
            if gang_name in self._dropped or not backend.can_join_group(gang, name, members):
                return backend.ungrouped_pod_additions(gang, clique)
            return backend.pod_additions(gang, clique, name)
        except Exception as exception:
            self._fail(gang, _error_of(backend, exception))
            return None

    def errors(self, gangs: Iterable[Gang]) -> tuple[UserError, ...]:
        """Problems that only a user can solve, reported on the cliques of the affected gangs."""
        return tuple(
            UserError(
                _CODE,
                error.message,
                child_reference(self._snapshot.workload, PodClique.KIND, clique.name),
            )
            for gang, error in self._failures(gangs)
            for clique in gang.cliques
        )

    def events(self, gangs: Iterable[Gang]) -> Iterator[PlannedEvent]:
        """The same problems as events on the gangs, unless a clique of the gang reports them already."""
        reporter = EventReporter.SCHEDULER_BACKEND.value
        for gang, error in self._failures(gangs):
            found, user_error = self._snapshot.gangs.get(gang.name), UserError(_CODE, error.message)
            known = (self._snapshot.cliques.get(clique.name) for clique in gang.cliques)
            reported = any(clique and user_error.reported_in(clique.status.last_errors) for clique in known)
            if found is not None and gang.cliques and not reported:
                yield PlannedEvent(
                    reference(found), error.event, error.message, warning=True, reporter=reporter
                )

    def _failures(self, gangs: Iterable[Gang]) -> Iterator[tuple[Gang, _SchedulerError]]:
        unconfigured = _SchedulerError(self.unconfigured_message) if self.unconfigured_message else None
        for gang in gangs:
            if error := unconfigured or self._errors.get(gang.name):
                yield gang, error

    def _fail(self, gang: Body, error: _SchedulerError) -> None:
        self._errors[gang["metadata"]["name"]] = error

    def _topology_name(self) -> str:
        """The scheduler's name of the topology: the referenced object, or the one that the operator
        manages."""
        if self._topology is None or self._backend is None:
            return ""
        return self._topology.references.get(self._backend.name, self._topology.name)


def _requested_scheduler(snapshot: Snapshot) -> str:
    named = scheduler_of(snapshot.workload, snapshot.index, snapshot.gangs, snapshot.pods)
    return named or DEFAULT_SCHEDULER


def _error_of(backend: SchedulerBackend, exception: Exception) -> _SchedulerError:
    if isinstance(exception, UnsupportedGang):
        return _SchedulerError(str(exception), exception.event)
    return _SchedulerError(
        f"scheduler backend {backend.name} failed: {type(exception).__name__}: {exception}"
    )
