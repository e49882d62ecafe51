"""When a status is published: a moment after the news, so that what comes together is told together.

A difference between how a status reads and how it should read is published a quarter of a second after it
last changed, and at the latest two seconds after it first arose. Who is still on the way is listened to for
longer, the more there is to tell by everybody: where a hundred replicas start at once, each has more to say a
moment later. While deeds take most of the slots, observations wait for room, at most for as long as
a storm may last, and come with what is true then. Bad news does not wait, nor does the news that an update
has begun or ended. Where a scheduler has only put it differently why a gang waits, it is repeated with
patience (see `patience`).
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api.cliques import PodCliqueStatus
from grove.api.conditions import ConditionType
from grove.api.gangs import GangPhase, PodGang, PodGangStatus
from grove.api.groups import PodCliqueScalingGroupStatus
from grove.api.intents import Intent, Status
from grove.operator.patience import Patience
from grove.plan.diff import status_patch
from grove.plan.facts import is_true
from grove.plan.gang_status import ASIDE
from grove.plan.model import Draft

K = TypeVar("K", bound=Hashable)

_QUIET = 0.25
_QUIET_IN_A_CROWD = 10.0
_AT_EASE = 100  # statuses a second: in a crowd, listening takes as long as telling all would at this pace
_PATIENCE = 8  # times the quiet, for what does not become quiet
_STORM = 20.0


class _Pending(Struct):
    desired: tuple[object, ...]
    since: float
    changed: float
    counted: int = 0  # statuses that are part of the crowd


class Publisher(Generic[K]):
    """Knows, for each key, what is yet to be told and since when."""

    def __init__(self) -> None:
        self._pending: dict[K, _Pending] = {}
        self._crowd = 0  # statuses that are yet to be told, of all keys
        self._held: dict[K, None] = {}  # due, and waiting for room, in order of arrival
        self._called: set[K] = set()  # there was room for them, and they are on their way
        self._patience: Patience[K] = Patience()

    def consider(
        self, key: K, drafts: tuple[Draft, ...], now: float, *, busy: bool
    ) -> tuple[list[Draft], float | None]:
        """The drafts to publish now, or the moment to come back at; nothing and None if all is told."""
        news = [draft for draft in drafts if draft.current != draft.desired]
        self._held.pop(key, None)
        self._called.discard(key)
        if not news:
            self._settle(key)
            return [], None
        if all(map(_is_talk, news)):
            self._settle(key)
            again = self._pause(key, now, busy=busy)
            return ([], again) if again is not None else (news, None)
        pending = self._note(key, tuple(map(_essence, news)), now)
        if not any(_bad_news(draft) or _moves_on(draft) for draft in news):
            if now < (due := self._due(pending, on_the_way=_on_the_way(news))):
                return [], due
            if busy and now < pending.since + _STORM:
                self._held[key] = None
                return [], pending.since + _STORM
        self._settle(key)
        return news, None

    def _pause(self, key: K, now: float, *, busy: bool) -> float | None:
        """Until when talk is not repeated yet; None: it is now."""
        if now < (due := self._patience.when(key, now)):
            return due
        if busy:
            return now + _QUIET_IN_A_CROWD
        self._patience.listened(key, now)
        return None

    def call(self, room: int) -> list[K]:
        """The keys that have waited longest for room, as many as it is for, with those that come already."""
        called = list(islice(self._held, max(0, room - len(self._called))))
        for key in called:
            del self._held[key]
        self._called.update(called)
        return called

    def _note(self, key: K, desired: tuple[object, ...], now: float) -> _Pending:
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = _Pending(desired, now, now)
        elif pending.desired != desired:
            pending.desired, pending.changed = desired, now
        self._count(pending, len(desired))
        return pending

    def _count(self, pending: _Pending, statuses: int) -> None:
        self._crowd += statuses - pending.counted
        pending.counted = statuses

    def _settle(self, key: K) -> None:
        if pending := self._pending.pop(key, None):
            self._count(pending, 0)

    def defer(self, key: K) -> None:
        """The key waits for a slow write: until it is considered again, others do not wait for its news."""
        if pending := self._pending.get(key):
            self._count(pending, 0)

    def _due(self, pending: _Pending, *, on_the_way: bool) -> float:
        crowd = self._crowd if on_the_way else 0
        quiet = min(max(_QUIET, crowd / _AT_EASE), _QUIET_IN_A_CROWD)
        return min(pending.changed + quiet, pending.since + _PATIENCE * quiet, pending.since + _STORM)

    def forget(self, key: K) -> None:
        self._settle(key)
        self._held.pop(key, None)
        self._called.discard(key)
        self._patience.forget(key)


def intents(drafts: list[Draft]) -> list[Intent]:
    """The writes that publish these drafts, each on the version that it was made from."""
    return [
        Status(draft.target, {**_version(draft), "status": patch})
        for draft in drafts
        if (patch := status_patch(draft.current, draft.desired))
    ]


def _version(draft: Draft) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": draft.version}} if draft.version else {}


def _essence(draft: Draft) -> object:
    """What a draft says apart from when it was said."""
    conditions = getattr(draft.desired, "conditions", ())
    return (
        draft.target,
        tuple((fact.type, fact.status, fact.reason, fact.message) for fact in conditions),
        getattr(draft.desired, "ready_replicas", None),
        getattr(draft.desired, "replicas", None),
        getattr(draft.desired, "available_replicas", None),
    )


def _on_the_way(news: list[Draft]) -> bool:
    """There is more to come: pods that are not ready yet, and nothing that could not be done."""
    return any(map(_starting, news)) and not any(getattr(draft.desired, "last_errors", ()) for draft in news)


def _starting(draft: Draft) -> bool:
    status = draft.desired
    if isinstance(status, PodCliqueStatus):
        return status.ready_replicas < status.replicas
    if isinstance(status, PodCliqueScalingGroupStatus):
        return status.available_replicas < status.replicas
    return isinstance(status, PodGangStatus) and status.phase in (GangPhase.PENDING, GangPhase.STARTING)


def _bad_news(draft: Draft) -> bool:
    """Something that was well is not any more."""
    before, after = draft.current.conditions, draft.desired.conditions
    breach, scheduled = ConditionType.MIN_AVAILABLE_BREACHED, ConditionType.CLIQUE_SCHEDULED
    known = any(fact.type == breach for fact in before)
    return (known and is_true(after, breach) and not is_true(before, breach)) or (
        is_true(before, scheduled) and not is_true(after, scheduled)
    )


def _is_talk(draft: Draft) -> bool:
    """A gang is where it was, and its scheduler has put it differently."""
    return draft.target.kind == PodGang.KIND.name and _silenced(draft.current) == _silenced(draft.desired)


def _silenced(status: PodGangStatus) -> PodGangStatus:
    facts = (replace(fact, message=fact.message.partition(ASIDE)[0]) for fact in status.conditions)
    return replace(status, conditions=tuple(facts))


def _moves_on(draft: Draft) -> bool:
    """An update has begun or ended."""
    return _update(draft.current) != _update(draft.desired)


def _update(status: object) -> object:
    progress = getattr(status, "update_progress", None)
    return progress and (progress.update_started_at, progress.update_ended_at)
