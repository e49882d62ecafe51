"""What has happened to a workload, one by one: read from statuses, metadata and events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.event_reasons import EventReason
from grove.api.meta import Condition
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dashboard.cut_texts import cut
from grove.dashboard.pages.meanings import (
    OF_CONDITIONS,
    OF_EVENTS,
    OF_OTHERS,
    SAME_AS_EVENT,
    ConditionMeaning,
    Meaning,
)
from grove.dashboard.pages.model import Severity, TimelineEntry, TimelineKind, TimelineSource
from grove.explanation.model import EventView, ObjectRef
from grove.explanation.subtree import POD, Subtree
from grove.plan.termination.history import read_records
from grove.plan.timestamps import timestamp

Reporting: TypeAlias = PodCliqueSet | PodCliqueScalingGroup | PodClique | PodGang
_CONDITION = TimelineSource.CONDITION
_OTHER = Meaning(TimelineKind.OTHER)
_TERMINATIONS = (EventReason.SET_REPLICA_DELETED, EventReason.GROUP_REPLICA_DELETED)
_LATE = 0.999
"""Times in statuses are rounded down. What completes something is sorted after events of the same second."""
_STEP = 0.0001
_LAST_STEP = 5


class Occurrence(Struct, frozen=True):
    """An entry of a time line before it is put into order."""

    entry: TimelineEntry
    at: float
    topic: str = ""
    """What it says: of two about one object at about the same time, one is enough."""
    follows: bool = False
    """Whether it is part of the rollout, recovery or scaling in which it happens."""
    phase: int = 0
    """How many rollouts, recoveries and so on have begun before it."""
    reported: bool = True
    """Whether the operator reports it; single events of others are left out first."""


def occurrences(tree: Subtree, events: Iterable[EventView]) -> Iterator[Occurrence]:
    """Everything that is known, in no order. Times that cannot be read are left out: an annotation may have
    any text."""
    yield from _creations(tree)
    yield from _updates(tree)
    yield from _terminations(tree)
    yield from _conditions(tree)
    yield from (each for event in events if (each := _of_event(event)) is not None)


def _at(text: str | None) -> float | None:
    """Seconds since 1970; None for no time."""
    try:
        return timestamp(text) if text else None
    except (ValueError, OverflowError):
        return None


def _of_status(
    time: str | None,
    kind: TimelineKind,
    about: ObjectRef,
    title: str,
    message: str = "",
    *,
    warning: bool = False,
    topic: str = "",
    follows: bool = False,
    completes: int = 0,
) -> Iterator[Occurrence]:
    """`completes`: which step of a start it completes; what is 0 begins something, or reports a state."""
    at = _at(time)
    if at is None or time is None:
        return
    severity = Severity.WARNING if warning else Severity.NORMAL
    entry = TimelineEntry(time, kind, severity, about, title, _line(message), 1, _CONDITION)
    yield Occurrence(entry, at + _LATE + completes * _STEP if completes else at, topic, follows)


def _creations(tree: Subtree) -> Iterator[Occurrence]:
    """The creation of the set, and of gangs: later ones are replicas that were added."""
    if tree.workload is None:
        return
    meta = tree.workload.metadata
    yield from _of_status(meta.creation_timestamp, TimelineKind.START, _ref(tree.workload), "Created")
    begun = _at(meta.creation_timestamp) or 0.0
    for gang in tree.gangs:
        created = _at(gang.metadata.creation_timestamp)
        if created is not None and created - begun > timing.MOMENT:
            time = gang.metadata.creation_timestamp
            yield from _of_status(time, TimelineKind.SCALING, _ref(gang), "PodGang created")


def _updates(tree: Subtree) -> Iterator[Occurrence]:
    progress = tree.workload.status.update_progress if tree.workload is not None else None
    if progress is None or tree.workload is None:
        return
    kind, about = TimelineKind.ROLLOUT, _ref(tree.workload)
    started, ended = EventReason.UPDATE_STARTED, EventReason.UPDATE_FINISHED
    yield from _of_status(progress.update_started_at, kind, about, "Update started", topic=started)
    yield from _of_status(
        progress.update_ended_at, kind, about, "Update finished", topic=ended, completes=_LAST_STEP
    )


def _terminations(tree: Subtree) -> Iterator[Occurrence]:
    """The latest gang termination of each unit, which its gang records."""
    for gang in tree.gangs:
        for unit, record in read_records(gang).items():
            times = f"{record.count} times in a row" if record.count > 1 else ""
            since = "it has been ready since" if record.recovered else "it has not been ready since"
            yield from _of_status(
                record.at,
                TimelineKind.RECOVERY,
                _ref(gang),
                "Gang termination",
                f"{unit} was restarted {times}".strip() + f"; {since}",
                warning=True,
                topic=_termination(unit),
            )


def _termination(unit: str) -> str:
    return f"termination of {unit}"


def _conditions(tree: Subtree) -> Iterator[Occurrence]:
    gangs = {code for gang in tree.gangs for code in _waiting_codes(gang.status.conditions)}
    found: tuple[Reporting | None, ...] = (tree.workload, *tree.groups, *tree.cliques, *tree.gangs)
    for each in found:
        if each is None:
            continue
        for condition in each.status.conditions:
            # Cliques, groups and the set repeat why gangs wait.
            repeats = not isinstance(each, PodGang) and condition.reason in gangs
            if not (condition.type == ConditionType.WAITING and repeats):
                yield from _of_condition(_ref(each), condition)


def _waiting_codes(conditions: Iterable[Condition]) -> Iterator[str]:
    return (each.reason for each in conditions if each.type == ConditionType.WAITING)


def _of_condition(about: ObjectRef, found: Condition) -> Iterator[Occurrence]:
    if found.type not in OF_CONDITIONS:  # a field of an object that users can write
        return
    type_ = ConditionType(found.type)
    meaning = OF_CONDITIONS[type_]
    title = meaning.titles.get(found.status)
    if title is None:
        return
    kind, follows = meaning.kind, meaning.follows
    same = SAME_AS_EVENT.get((type_, found.status)) or SAME_AS_EVENT.get((type_, found.reason))
    topic: str = same or title
    if type_ is ConditionType.WAITING:
        # Its time is when the wait began, and the reason may be a later one: it begins no phase at that time.
        kind = OF_EVENTS.get(found.reason, _OTHER).kind
        follows = kind not in (TimelineKind.PLACEMENT, TimelineKind.OTHER)
        title, topic = f"{title}, now: {found.reason}", found.reason
    elif same is not None:
        kind = OF_EVENTS[same].kind
    yield from _of_status(
        found.last_transition_time,
        kind,
        about,
        title,
        _as_of_now(found, meaning),
        warning=found.status in meaning.problems,
        topic=topic,
        follows=follows,
        completes=meaning.completes if found.status == "True" else 0,
    )


def _as_of_now(found: Condition, meaning: ConditionMeaning) -> str:
    """The message of a condition. While something is wrong, it can change later than the status, whose time
    the entry has."""
    changes = found.status in meaning.problems or found.status == "False"
    return f"now: {found.message}" if found.message and changes else found.message


def _of_event(event: EventView) -> Occurrence | None:
    at = _at(event.time)
    if at is None:
        return None
    own, other = OF_EVENTS.get(event.reason), OF_OTHERS.get(event.reason)
    # Kubernetes has some of our words for pods, which the operator writes no events about.
    known = (other or own if event.about.kind == POD else own or other) or _OTHER
    warning = event.type == "Warning"
    entry = TimelineEntry(
        event.time,
        known.kind,
        Severity.WARNING if warning else Severity.NORMAL,
        event.about,
        event.reason,
        event.message,
        event.count,
        TimelineSource.EVENT,
    )
    topic = event.reason
    if event.reason in _TERMINATIONS:
        topic = _termination(event.message.partition(" ")[0])
    return Occurrence(entry, at, topic, known.follows, reported=known is own or warning)


def _ref(found: Reporting) -> ObjectRef:
    return ObjectRef(found.KIND.name, found.metadata.name, found.metadata.namespace)


def _line(text: str) -> str:
    return cut(" ".join(text.split()))
