"""Who is a member of a clique's gang: the one place where pods come and go.

A PodGang names every pod of its cliques. This module decides, for one clique, what those names should be; the
names are written first, with the version of the gang that was read, and only then is a pod made or deleted.
So whoever acts on an old view of the world is stopped by the gang before doing harm, and no second pod for a
place and no second victim can come about.

    references in the gang, in order
      -> seats: each name with its pod, if there is one; those whose pod is leaving, has ended or was lost
         get a successor's name
      -> dismiss or adopt and add, until there are as many seats as replicas
      -> number: living pods keep their index, all others take the lowest free ones

A successor's name follows from its predecessor's, and a new seat's from the version of the gang that adds it:
planned again, it is the same name; and no name comes twice, unless its pod went while nobody watched: then
nobody can tell whether it had been made.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from grove.api import labels, names
from grove.api.intents import derived
from grove.api.pods import Pod, PodPhase
from grove.plan import pods as state
from grove.plan.backoff import replacement_due

_PHASE_RANK = {PodPhase.UNKNOWN.value: 1, PodPhase.RUNNING.value: 2}  # everything else ranks as Pending


class Member(Struct, frozen=True, gc=False):
    """A seat in a clique: a name, an index, and the pod if it exists."""

    name: str
    index: int
    pod: Pod | None = None
    failures: int = 0
    """How many pods in a row have ended in this seat."""


class Membership(Struct, frozen=True, gc=False):
    """Who the members of a clique should be, and what must happen for it once that is written."""

    members: tuple[Member, ...]
    leaving: tuple[Pod, ...] = ()
    """Pods to delete: no longer members."""
    gives_up: bool = False
    """Whether somebody goes who could have stayed: for the count's sake, to be confirmed before."""
    bereft: bool = False
    """Whether a pod was taken away by others: by the garbage collector, if its clique is gone."""
    wake_at: float | None = None

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def missing(self) -> tuple[Member, ...]:
        """Members whose pod is yet to be made."""
        return tuple(member for member in self.members if member.pod is None)


class Roll(Struct, frozen=True, gc=False):
    """What is known about one clique's pods."""

    clique: str
    uid: str
    """Of the PodClique; a late one if it is made in the same plan."""
    epoch: str
    """Which version of the gang this is decided on."""
    references: tuple[str, ...]
    pods: tuple[Pod, ...]
    """Pods of the clique."""
    names: frozenset[str]
    """Names that are taken, by its pods or by others: a pod of an earlier clique of this name, for one."""
    departed: frozenset[str]
    template_hash: str
    outgoing: frozenset[str] = frozenset()
    """Members that an update or a termination replaces: that has been written down elsewhere."""


class _Seat(NamedTuple):
    name: str
    pod: Pod | None
    predecessor: str = ""  # not empty: the seat is vacant, and this is whom the next one succeeds
    failures: int = 0


def enrol(roll: Roll, count: int, now: float) -> Membership:
    """Decide who the members are, for `count` replicas."""
    by_name = {pod.metadata.name: pod for pod in roll.pods}
    return _undisturbed(roll, by_name, count) or _reseated(roll, by_name, count, now)


def _undisturbed(roll: Roll, by_name: dict[str, Pod], count: int) -> Membership | None:
    """Nearly always nobody comes or goes: every name has its living pod, in the order of the indices."""
    if roll.outgoing or not len(roll.references) == len(by_name) == count:
        return None
    members: list[Member] = []
    least = 0
    for name in roll.references:
        pod = by_name.get(name)
        index = state.index_of(pod) if pod is not None and state.alive(pod) else None
        if index is None or index < least:
            return None
        members.append(Member(name, index, pod))
        least = index + 1
    return Membership(tuple(members))


def _reseated(roll: Roll, by_name: dict[str, Pod], count: int, now: float) -> Membership:
    seats, wake_at = _seats(roll, by_name, now)
    seats = _one_pod_an_index(seats)
    kept = _dismiss(seats, len(seats) - count, roll.template_hash)
    members = _number(roll, [*kept, *_adopt(roll, kept, count - len(kept))], count)
    staying = {member.pod.metadata.uid for member in members if member.pod is not None}
    leaving = tuple(
        pod for pod in roll.pods if pod.metadata.uid not in staying and not state.terminating(pod)
    )
    unforeseen = (pod for pod in leaving if pod.metadata.name not in roll.outgoing)
    gives_up = len(seats) > count or any(map(state.alive, unforeseen))
    bereft = any(_was_taken(roll, by_name, name) for name in roll.references)
    return Membership(members, leaving, gives_up, bereft, wake_at)


def _was_taken(roll: Roll, by_name: dict[str, Pod], name: str) -> bool:
    """By others: we take a pod's name off the gang before we delete it."""
    pod = by_name.get(name)
    return state.terminating(pod) if pod is not None else name in roll.departed


def _seats(roll: Roll, by_name: dict[str, Pod], now: float) -> tuple[list[_Seat], float | None]:
    seats: list[_Seat] = []
    wake_at: float | None = None
    for name in dict.fromkeys(roll.references):
        pod = by_name.get(name)
        if pod is None:
            lost = name in roll.departed or name in roll.names
            seats.append(_Seat(name, None, name if lost else ""))
        elif state.terminating(pod) or name in roll.outgoing:
            seats.append(_Seat(name, None, name))
        elif state.ended(pod):
            due, failures = replacement_due(pod)
            if now >= due:
                seats.append(_Seat(name, None, name, failures))
            else:
                seats.append(_Seat(name, pod))
                wake_at = due if wake_at is None else min(wake_at, due)
        else:
            seats.append(_Seat(name, pod))
    return seats, wake_at


def _one_pod_an_index(seats: list[_Seat]) -> list[_Seat]:
    """Two pods of one index answer to one host name: the younger one goes."""
    held: set[int] = set()
    doubles: set[str] = set()
    for seat in sorted((seat for seat in seats if seat.pod), key=lambda seat: age(seat.pod)):
        assert seat.pod is not None
        index = state.index_of(seat.pod)
        if index is None or index in held:
            doubles.add(seat.name)
        else:
            held.add(index)
    return [_Seat(seat.name, None, seat.name) if seat.name in doubles else seat for seat in seats]


def _dismiss(seats: list[_Seat], excess: int, template_hash: str) -> list[_Seat]:
    """Give up the seats that are missed least; the rest stay in their order."""
    if excess <= 0:
        return seats
    youngest_first = sorted(seats, key=lambda seat: age(seat.pod), reverse=True)
    least_missed_first = sorted(youngest_first, key=lambda seat: _worth(seat.pod, template_hash))
    dismissed = {seat.name for seat in least_missed_first[:excess]}
    return [seat for seat in seats if seat.name not in dismissed]


def _adopt(roll: Roll, seats: list[_Seat], room: int) -> list[_Seat]:
    """Pods of the clique that no seat names: better than making new ones, if their index is free."""
    if room <= 0:
        return []
    taken = {state.index_of(seat.pod) for seat in seats if seat.pod} | {None}
    named = {seat.name for seat in seats}
    adopted: list[_Seat] = []
    oldest_first = sorted(roll.pods, key=age)
    for pod in sorted(oldest_first, key=lambda pod: _worth(pod, roll.template_hash), reverse=True):
        index = state.index_of(pod)
        if len(adopted) < room and state.alive(pod) and pod.metadata.name not in named and index not in taken:
            adopted.append(_Seat(pod.metadata.name, pod))
            taken.add(index)
    return adopted


def _number(roll: Roll, seats: list[_Seat], count: int) -> tuple[Member, ...]:
    """Give every seat its index and name; the order of the indices is the order of the references."""
    held = {index for seat in seats if seat.pod and (index := state.index_of(seat.pod)) is not None}
    failures = _failures(roll)
    free = (index for index in range(count + len(held)) if index not in held)
    members: list[Member] = []
    for seat in seats + [_Seat("", None)] * (count - len(seats)):
        if seat.pod is not None:
            index = state.index_of(seat.pod)
            assert index is not None
            members.append(Member(seat.name, index, seat.pod))
            continue
        index = next(free)
        name = seat.name
        if seat.predecessor or not name:
            name = _new_name(roll, index, seat.predecessor or roll.epoch)
        members.append(Member(name, index, None, max(seat.failures, failures.get(index, 0))))
    return tuple(sorted(members, key=lambda member: member.index))


def _failures(roll: Roll) -> dict[int | None, int]:
    """What ended pods say of their index. A successor may have been named and not made: then they are no
    members any more, and still all there is to know of it."""
    ended = [pod for pod in roll.pods if state.ended(pod)]
    return {state.index_of(pod): replacement_due(pod)[1] for pod in ended}


def succeeds(uid: str, clique: str, member: Member, predecessor: str) -> bool:
    """Whether a member has its name from another, which it replaced."""
    return member.name == derived(_pod_name, uid, clique, member.index, predecessor)


def _new_name(roll: Roll, index: int, predecessor: str) -> str:
    name = derived(_pod_name, roll.uid, roll.clique, index, predecessor)
    while name in roll.names or name in roll.departed:
        name = derived(_pod_name, roll.uid, roll.clique, index, name)
    return name


def _pod_name(uid: str, clique: str, index: int, predecessor: str) -> str:
    return names.pod(clique, uid, index, predecessor)


def age(pod: Pod | None) -> tuple[str, int, str]:
    """Sorts the oldest first; what has no pod is youngest of all. The server counts in whole seconds: of pods
    that were made together, the first index is the oldest."""
    if pod is None:
        return ("~", 0, "")
    return (pod.metadata.creation_timestamp or "~", state.index_of(pod) or 0, pod.metadata.name)


def _worth(pod: Pod | None, template_hash: str) -> tuple[int, ...]:
    """How much a pod is missed: first those that run, then those that are ready, then those that are new."""
    if pod is None or state.ended(pod):
        return (0, 0, 0, 0, 0)
    return (
        1,
        int(pod.spec.node_name != ""),
        _PHASE_RANK.get(pod.status.phase, 0),
        int(state.ready(pod)),
        int(pod.metadata.labels.get(labels.TEMPLATE_HASH) == template_hash),
    )
