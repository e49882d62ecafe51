"""One time line of a workload: start, rollouts, recoveries, scaling and placement, the oldest first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from grove import timing
from grove.api.event_reasons import EventReason
from grove.api.formats.name_list import name_list
from grove.api.naming import labels
from grove.dashboard.pages.model import Severity, TimelineEntry, TimelineKind, TimelineSource
from grove.dashboard.pages.occurrences import Occurrence, occurrences
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.model import EventView
from grove.explanation.subtree import POD, Subtree
from grove.plan.timestamps import timestamp

_PHASES = frozenset({TimelineKind.START, TimelineKind.ROLLOUT, TimelineKind.RECOVERY, TimelineKind.SCALING})
_EVENT = TimelineSource.EVENT


class Timeline(NamedTuple):
    """The entries, and how many were left out."""

    entries: tuple[TimelineEntry, ...]
    left_out: int = 0


def timeline(tree: Subtree, events: Iterable[EventView]) -> Timeline:
    """What has happened to a set. `events`: all of its own and of its parts, and of an earlier set of its
    name, which are left out."""
    own = (each for each in events if not _is_earlier(each, tree))
    found = sorted(occurrences(tree, own), key=_order)
    grouped = _grouped(_in_phases(_without_repetitions(found), tree))
    kept = _most_important(grouped)
    return Timeline(tuple(each.entry for each in kept), len(grouped) - len(kept))


def _is_earlier(event: EventView, tree: Subtree) -> bool:
    """Whether an event is older than the set. A graph may be older than its set."""
    created = tree.workload.metadata.creation_timestamp if tree.workload is not None else None
    if created is None or event.about.kind == DynamoGraphDeployment.KIND.name or not event.time:
        return False
    return timestamp(event.time) < timestamp(created)


def _without_repetitions(found: Iterable[Occurrence]) -> list[Occurrence]:
    """Of a condition and an event that say the same, the event: its time is exact, and it is counted. In the
    order of time."""
    kept: list[Occurrence] = []
    latest: dict[tuple[str, str], int] = {}
    for each in found:
        about = "" if each.topic.startswith("termination of ") else each.entry.about.name
        key = each.topic, about
        position = latest.get(key) if each.topic else None
        if position is not None and _same(kept[position], each):
            if each.entry.source is _EVENT:
                kept[position] = each
            continue
        latest[key] = len(kept)
        kept.append(each)
    return sorted(kept, key=_order)


def _order(found: Occurrence) -> tuple[float, str]:
    """By time, then by name, of which that of a set is before those of its parts."""
    return found.at, found.entry.about.name


def _same(earlier: Occurrence, later: Occurrence) -> bool:
    """Whether two about one thing are one; two events are always two."""
    sources = {earlier.entry.source, later.entry.source}
    return sources != {_EVENT} and later.at - earlier.at <= timing.TIMELINE_SAME + 1.0


def _in_phases(found: Iterable[Occurrence], tree: Subtree) -> Iterator[Occurrence]:
    """What follows from a rollout, a recovery or scaling belongs to it: pods become ready in all of them."""
    scaled_out = _pods_added_later(tree)
    phase, number, updating = TimelineKind.START, 0, False
    for each in found:
        entry = each.entry
        updating = _updates(each, updating)
        kind = phase if each.follows else entry.kind
        if entry.title in (EventReason.POD_CREATED, EventReason.POD_DELETED):
            kind = TimelineKind.ROLLOUT if updating else _kind_of_pod(each, scaled_out)
        if kind in _PHASES and kind is not phase:
            phase, number = kind, number + 1
        yield replace(each, entry=replace(entry, kind=kind), phase=number)


def _updates(found: Occurrence, updating: bool) -> bool:
    match found.topic:
        case EventReason.UPDATE_STARTED:
            return True
        case EventReason.UPDATE_FINISHED:
            return False
        case _:
            return updating


def _kind_of_pod(found: Occurrence, scaled_out: set[str]) -> TimelineKind:
    """Of the event of a pod outside of updates. The first pods have no event: a pod that is created later
    replaces one, unless its index shows that its clique was scaled out."""
    entry = found.entry
    if entry.title == EventReason.POD_DELETED or _created_pod(entry.message) in scaled_out:
        return TimelineKind.SCALING
    return TimelineKind.RECOVERY


def _created_pod(message: str) -> str:
    """`Created pod NAME in place of ANOTHER`."""
    words = message.split()
    return words[2] if len(words) > 2 else ""


def _pods_added_later(tree: Subtree) -> set[str]:
    """The pods with an index above the replicas of their clique in the template, which it began with."""
    cliques = tree.workload.spec.template.cliques if tree.workload is not None else ()
    begun = {each.name: each.spec.replicas for each in cliques}
    found = set()
    for pod in tree.pods:
        index = pod.metadata.labels.get(labels.POD_INDEX, "")
        role = pod.metadata.labels.get(labels.CLIQUE_TEMPLATE, "")
        if index.isdecimal() and int(index) >= begun.get(role, 0):
            found.add(pod.metadata.name)
    return found


def _grouped(found: Iterable[Occurrence]) -> list[Occurrence]:
    """The same on several objects at about the same time is one entry."""
    groups: dict[tuple[object, ...], list[Occurrence]] = {}
    ordered: list[list[Occurrence]] = []
    for each in found:
        entry = each.entry
        what = entry.title, entry.kind, entry.severity, entry.source, entry.about.kind
        key = (*what, _clique(entry), each.phase)
        group = groups.get(key)
        if group is None or each.at - group[0].at > timing.TIMELINE_GROUP:
            group = groups[key] = []
            ordered.append(group)
        group.append(each)
    return [_one_of(group) for group in ordered]


def _clique(entry: TimelineEntry) -> str:
    """The clique of a pod: the name of a pod is that of its clique and a suffix."""
    return entry.about.name.rpartition("-")[0] if entry.about.kind == POD else ""


def _one_of(group: list[Occurrence]) -> Occurrence:
    first = group[0]
    if len(group) == 1:
        return first
    names = list(dict.fromkeys(each.entry.about.name for each in group))
    messages = dict.fromkeys(each.entry.message for each in group)
    where = f"{name_list(names)}: " if len(names) > 1 else ""
    message = next(iter(messages)) + (f" (and {len(messages) - 1} more)" if len(messages) > 1 else "")
    count = sum(each.entry.count for each in group)
    return replace(first, entry=replace(first.entry, message=(where + message).strip(" :"), count=count))


def _most_important(found: list[Occurrence]) -> list[Occurrence]:
    """As many as a page shows: what the operator reports and warnings before events of other components, and
    the latest before earlier ones."""
    if len(found) <= timing.TIMELINE_ENTRIES:
        return found
    ranked = sorted(
        range(len(found)),
        key=lambda i: (found[i].reported or found[i].entry.severity is Severity.WARNING, i),
        reverse=True,
    )
    return [found[i] for i in sorted(ranked[: timing.TIMELINE_ENTRIES])]
