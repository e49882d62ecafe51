"""Telling the scheduler about gangs: its own object for each, written after the gang and before the pods.

A gang that cannot be told gets no pods: they would be placed one by one, or never. Where the configuration
does not list the scheduler of a replica, nobody is held up, and people are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from textwrap import shorten

from msgspec import Struct

from grove.api.config import DEFAULT_SCHEDULER
from grove.api.events import EventReason
from grove.api.intents import Create, Patch, Target
from grove.api.pods import Pod
from grove.plan.allegiance import scheduler_of, unlisted
from grove.plan.diff import merge_patch
from grove.plan.model import Complaint
from grove.plan.pods import controller_uid
from grove.plan.snapshot import Snapshot
from grove.plan.targets import create
from grove.schedulers.backend import (
    Backend,
    Body,
    Foreign,
    Grouping,
    Marks,
    Noting,
    Outspoken,
    Request,
    Unmappable,
    Wish,
)

CANNOT_TELL = "ERR_SYNC_PODGROUP"
_NOTHING = Marks()
_LINE = 500  # characters: some schedulers speak of every node


class _Trouble(Struct, frozen=True):
    words: str
    event: EventReason = EventReason.SCHEDULER_NOT_TOLD


class Teller:
    """Tells one replica's gangs to their scheduler. A backend of somebody else may raise anything."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._backend, self._told = snapshot.scheduler, snapshot.told
        self._wish = Wish(snapshot.workload.metadata, snapshot.workload.spec.template)
        self._topology, self._lacking = snapshot.topology, snapshot.lacking
        self._troubles: dict[str, _Trouble] = {}
        self.words: dict[str, str] = {}
        """By gang, why it waits for nodes, in one line: as its scheduler puts it, if it knows of the gang."""
        self.minimum_first = self._backend is not None and self._backend.minimum_first
        """Whether pods beyond a gang's minimum wait until that is placed."""
        self.scheduler = self._backend.name if self._backend else _asked_for(snapshot)
        listed = self._backend is not None or self.scheduler == DEFAULT_SCHEDULER
        self.unlisted = "" if listed else self.scheduler
        """The scheduler, if that is told nothing because the configuration does not list it."""
        self._neglect = "" if listed else unlisted(self.scheduler, snapshot.workload)

    def tell(self, gang: Body, uid: str) -> Create | Patch | None:
        """What has to be written about a gang; nothing if the scheduler knows it, or cannot be told."""
        if self._backend is None:
            if self._neglect:
                self.words[gang["metadata"]["name"]] = self._neglect
            return None
        kind = self._backend.keeps
        if self._told is None and kind is not None:
            why = f"cannot see {kind.plural}.{kind.group}: may the operator list and watch them?"
            self._hold(gang, _Trouble(why))
            return None
        try:
            return self._telling(self._backend, gang, uid)
        except Exception as problem:
            self._hold(gang, _trouble(self._backend, problem))
            return None

    def _telling(self, backend: Backend, gang: Body, uid: str) -> Create | Patch | None:
        found = (self._told or {}).get(backend.told_name(gang))
        if found is not None and controller_uid(found.metadata) != uid:
            found = None  # its name is taken: whoever creates it learns by whom
        if found is not None:
            self._hear(backend, gang["metadata"]["name"], found)
        request = Request(gang, uid, self._wish, self._topology_name(), found, self._lacking)
        body = backend.told(request)
        if body is None:
            return None
        return create(body) if found is None else _mended(body, found)

    def _hear(self, backend: Backend, gang: str, found: Foreign) -> None:
        if isinstance(backend, Outspoken):
            with suppress(Exception):  # what it says is welcome, and not needed
                if said := shorten(backend.why(found), _LINE, placeholder=" ..."):
                    self.words[gang] = f"{backend.name} says: {said}"

    def notes(self) -> Mapping[str, str]:
        """What gangs are annotated with for their scheduler; nothing if it is at a loss."""
        try:
            return dict(self._backend.gang_notes) if isinstance(self._backend, Noting) else {}
        except Exception:
            return {}

    def holds(self, gang: str) -> bool:
        """Whether the gang cannot be told."""
        return gang in self._troubles

    def marks(self, gang: Body, clique: str, members: Iterable[Pod | None]) -> Marks | None:
        """What pods of a clique that are to be made carry for their scheduler; None if that cannot be known.
        `members` are all of the gang, those that are yet to be made as None."""
        backend = self._backend
        if backend is None:
            return _NOTHING
        try:
            if isinstance(backend, Grouping) and not backend.joins(gang, members):
                return backend.lone_marks(gang, clique)
            return backend.marks(gang, clique)
        except Exception as problem:
            self._hold(gang, _trouble(backend, problem))
            return None

    def complaints(self, cliques: Mapping[str, Iterable[str]]) -> tuple[Complaint, ...]:
        """What only a person can mend, told on the cliques of the gangs that it is about."""
        troubles = dict.fromkeys(cliques, _Trouble(self._neglect)) if self._neglect else self._troubles
        return tuple(
            Complaint(clique, CANNOT_TELL, trouble.words, gang, trouble.event.value)
            for gang, trouble in troubles.items()
            for clique in cliques.get(gang, ())
        )

    def _hold(self, gang: Body, trouble: _Trouble) -> None:
        self._troubles[gang["metadata"]["name"]] = trouble

    def _topology_name(self) -> str:
        """What the scheduler calls the topology: somebody else's object, or the one that we manage."""
        if self._topology is None or self._backend is None:
            return ""
        return self._topology.references.get(self._backend.name, self._topology.name)


def _asked_for(snapshot: Snapshot) -> str:
    named = scheduler_of(snapshot.workload, snapshot.index, snapshot.gangs, snapshot.pods)
    return named or DEFAULT_SCHEDULER


def _trouble(backend: Backend, problem: Exception) -> _Trouble:
    if isinstance(problem, Unmappable):
        return _Trouble(str(problem), problem.event)
    return _Trouble(f"scheduler backend {backend.name} failed: {type(problem).__name__}: {problem}")


def _mended(body: Body, found: Foreign) -> Patch | None:
    metadata: Body = {}
    for field, known in (("labels", found.metadata.labels), ("annotations", found.metadata.annotations)):
        wanted = body["metadata"].get(field) or {}
        if changed := {key: value for key, value in wanted.items() if known.get(key) != value}:
            metadata[field] = changed
    spec = merge_patch(found.spec, body["spec"])
    if not metadata and not spec:
        return None
    patch: Body = {"metadata": {"uid": found.metadata.uid, **metadata}}
    if spec:
        patch["spec"] = spec
    target = Target(body["apiVersion"], body["kind"], found.metadata.name, found.metadata.namespace)
    return Patch(target, patch)
