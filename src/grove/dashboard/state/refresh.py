"""Computes outdated summaries again, and publishes what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from grove import timing
from grove.dashboard.model import Picture, SetSummary, Source
from grove.dashboard.rights import Rights
from grove.dashboard.state.changes import Change, Contents, Facts, Pairs, picture
from grove.dashboard.state.history import History
from grove.dashboard.state.observed import Key, Observed, Outdated
from grove.dashboard.state.recent_events import RecentEvents
from grove.dashboard.state.summaries import changes_at, object_key
from grove.dashboard.state.visibility import GANGS, NODES, SETS
from grove.logger import get_logger
from grove.plan.timestamps import rfc3339

log = get_logger("grove.dashboard")
T = TypeVar("T")
K = TypeVar("K")


class Refresher:
    """The contents of all pictures. `clock` gives the seconds since 1970."""

    def __init__(
        self, observed: Observed, events: RecentEvents, source: Source, clock: Callable[[], float] = time.time
    ) -> None:
        self._observed, self._events, self._clock = observed, events, clock
        self.source = source
        self.history = History()
        self.contents = Contents()
        """What was published last."""
        self._due: dict[Key, float] = {}
        """By set, when it is summarized again, although no event outdates it."""
        self._pauses: dict[Key, float] = {}
        """By large set, until when it is not summarized again."""
        self._failed: dict[str, set[str]] = {}
        """By kind, the keys of summaries that could not be computed."""

    @property
    def facts(self) -> Facts:
        """What was published last."""
        return self.contents.facts

    @property
    def now(self) -> float:
        """The time of the pictures, in seconds since 1970."""
        return self._clock()

    def refresh(self, facts: Facts) -> None:
        """Compute everything that is outdated, at once."""
        for _ in self.steps(facts):
            pass

    def steps(self, facts: Facts) -> Iterator[None]:
        """Compute everything that is outdated, and publish it at the end; between two steps other work may go
        on, and what changes meanwhile is published next time."""
        now, observed = self._clock(), self._observed
        outdated = observed.take_outdated()
        outdated.sets = self._due_sets(outdated.sets, now)
        try:
            yield from self._publish(outdated, facts, now)
        except BaseException:  # also if it is ended between two steps
            observed.put_back(outdated)
            raise

    def _publish(self, outdated: Outdated, facts: Facts, now: float) -> Iterator[None]:
        observed, contents = self._observed, self.contents
        nodes = yield from self._computed(NODES, outdated.nodes, contents.nodes, str, observed.node)
        gangs = yield from self._computed(
            GANGS, outdated.gangs, contents.gangs, _joined, lambda key: observed.gang(key, now)
        )
        sets = yield from self._computed(
            SETS, outdated.sets, contents.sets, _joined, lambda key: self._set(key, now)
        )
        failed = {kind: frozenset(names) for kind, names in self._failed.items() if names}
        facts = replace(facts, unread=replace(facts.unread, failed=failed))
        events = self._events.take_new()
        change = Change(rfc3339(now), nodes, gangs, sets, (contents.facts, facts), events)
        if not change.is_empty:
            self.history.publish(change)
        _replace(contents.nodes, nodes)
        _replace(contents.gangs, gangs)
        _replace(contents.sets, sets)
        contents.facts = facts

    def _due_sets(self, outdated: set[Key], now: float) -> set[Key]:
        """The sets that are summarized now: those that are outdated, by an event or by time, but for large
        ones that were summarized a moment ago."""
        self._pauses = {key: until for key, until in self._pauses.items() if until > now}
        for key in self._pauses.keys() & outdated:
            self._due[key] = self._pauses[key]
        due = {key for key, time in self._due.items() if time <= now}
        chosen = due | (outdated - self._pauses.keys())
        for key in chosen:
            self._due.pop(key, None)
        return chosen

    def _set(self, key: Key, now: float) -> SetSummary | None:
        found = self._observed.set(key, now)
        if found is not None and (due := changes_at(found, now)) is not None:
            self._due[key] = due
        if found is not None and (pods := self._observed.pods_of_set(key)) >= timing.DASHBOARD_LARGE_SET:
            self._pauses[key] = now + pods * timing.DASHBOARD_PAUSE_PER_POD
        return found

    def _computed(
        self,
        kind: str,
        keys: Iterable[K],
        known: Mapping[str, T],
        text: Callable[[K], str],
        compute: Callable[[K], T | None],
    ) -> Generator[None, None, dict[str, tuple[T | None, T | None]]]:
        """The summaries that differ from what is known. One that cannot be computed stays as it is, and the
        page says so: whatever is wrong with an object, all others are shown."""
        found: dict[str, tuple[T | None, T | None]] = {}
        failed = self._failed.setdefault(kind, set())
        for count, key in enumerate(keys, 1):
            name = text(key)
            try:
                before, after = known.get(name), compute(key)
                failed.discard(name)
            except Exception as bug:
                log.exception("summary failed", key=name, action="summarize", reason=str(bug))
                failed.add(name)
                continue
            if before != after:
                found[name] = (before, after)
            if count % timing.DASHBOARD_SLICE == 0:
                yield
        return found

    def picture(self, rights: Rights) -> Picture:
        """Everything that a viewer sees now."""
        return picture(
            self.contents,
            self._events.all(),
            rights,
            version=self.history.version(rights),
            now=rfc3339(self._clock()),
            source=self.source,
            most_events=timing.DASHBOARD_EVENTS,
        )


def _joined(key: Key) -> str:
    return object_key(*key)


def _replace(known: dict[str, T], pairs: Pairs[T]) -> None:
    for key, (_, after) in pairs.items():
        if after is None:
            known.pop(key, None)
        else:
            known[key] = after
