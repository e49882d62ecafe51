"""What a user may see: the API server answers which kinds they may list, in the cluster or in a namespace.

An answer is kept for a short time. Without an answer nothing is granted: the request fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from msgspec import Struct

from grove import timing
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dashboard.access.errors import ReviewUnavailable
from grove.dashboard.access.token_reviewer import user_key
from grove.dashboard.rights import Rights, User
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS, NODES, PODS, Resource
from grove.kube.errors import KubeError
from grove.kube.server.access_review import ACCESS_REVIEWS
from grove.operator.caches.resources import resource_of

_CORE_EVENTS = Resource("", "v1", "events", "Event")
_SETS = resource_of(PodCliqueSet.KIND)
SHOWN: tuple[tuple[Resource, ...], ...] = (
    (_SETS,),
    (resource_of(PodClique.KIND),),
    (resource_of(PodCliqueScalingGroup.KIND),),
    (resource_of(PodGang.KIND),),
    (PODS,),
    (EVENTS, _CORE_EVENTS),  # the same objects in two groups: roles of users often name one of them
)
"""The kinds that the page shows; of each, one of these resources must be listed."""


class _Question(NamedTuple):
    """Whether a user may list a resource; an empty namespace means all of them."""

    resource: Resource
    namespace: str


class _AccessStatus(Struct, frozen=True):
    allowed: bool = False


class _AccessReview(Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class _Answers:
    """What is known about one user."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.known: dict[_Question, tuple[bool, float]] = {}


@asynccontextmanager
async def _reviewing() -> AsyncIterator[None]:
    """Bounds the time of reviews. Raises ReviewUnavailable."""
    try:
        async with asyncio.timeout(timing.RIGHTS_REVIEW_TIMEOUT):
            yield
    except TimeoutError:
        raise ReviewUnavailable(f"no answer within {timing.RIGHTS_REVIEW_TIMEOUT:g} s") from None
    except (KubeError, ValueError) as problem:
        raise ReviewUnavailable(str(problem)) from None


class RightsReviewer:
    """Asks the API server on behalf of users. `namespaces`: those that have workloads."""

    def __init__(
        self,
        client: Client,
        namespaces: Callable[[], Iterable[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._namespaces, self._clock = client, namespaces, clock
        self._users: dict[bytes, _Answers] = {}
        self._turns = asyncio.Semaphore(timing.RIGHTS_REVIEWS_AT_ONCE)

    async def rights(self, user: User) -> Rights:
        """What a user may see now. Raises ReviewUnavailable."""
        answers = self._answers(user)
        async with _reviewing(), answers.lock:
            return await _Review(self, user, answers).rights(sorted(self._namespaces()))

    async def may_list(self, user: User, resource: Resource, namespace: str) -> bool:
        """Whether a user may list one kind in one namespace; kinds that the page shows are known from
        `rights`. Raises ReviewUnavailable."""
        if _is_shown(resource):
            return True
        answers = self._answers(user)
        async with _reviewing(), answers.lock:
            return await _Review(self, user, answers).allowed(resource, namespace)

    def _answers(self, user: User) -> _Answers:
        key = user_key(user)
        answers = self._users.pop(key, None) or _Answers()
        if len(self._users) >= timing.RIGHTS_USERS_KEPT:
            del self._users[next(iter(self._users))]
        self._users[key] = answers
        return answers

    @property
    def now(self) -> float:
        """The time of the clock that answers are kept by."""
        return self._clock()

    async def ask(self, user: User, question: _Question) -> bool:
        """One answer of the API server. Raises KubeError."""
        subject = {"user": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        asked = {
            "verb": "list",
            "group": question.resource.group,
            "version": question.resource.version,
            "resource": question.resource.plural,
            "namespace": question.namespace,
        }
        spec = {**{key: value for key, value in subject.items() if value}, "resourceAttributes": asked}
        body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
        async with self._turns:
            answer = await self._client.create(ACCESS_REVIEWS, body, as_type=_AccessReview)
        return answer.status.allowed


class _Review:
    """The questions about one user, at one time."""

    def __init__(self, reviewer: RightsReviewer, user: User, answers: _Answers) -> None:
        self._reviewer, self._user, self._answers = reviewer, user, answers
        self._asked: set[_Question] = set()

    async def rights(self, namespaces: list[str]) -> Rights:
        """What the user may see of these namespaces."""
        nodes = await self.allowed(NODES, "")
        missing = await self._missing("")
        if missing is None:
            self._forget()
            return Rights(None, nodes, _unread(nodes))
        found = await asyncio.gather(*(self._missing(each) for each in namespaces))
        self._forget()
        by_name = dict(zip(namespaces, found, strict=True))
        seen = frozenset(name for name, lacks in by_name.items() if lacks is None)
        # A user who may list the sets of a namespace knows it: the others are not named.
        partly = [(name, lacks) for name, lacks in by_name.items() if lacks is not None and lacks != _SETS]
        return Rights(seen, nodes, (*_unread(nodes), *_unread_namespaces(seen, partly)))

    async def _missing(self, namespace: str) -> Resource | None:
        """The first kind that the user may not list; None: they may list all."""
        for resources in SHOWN:
            for resource in resources:
                if await self.allowed(resource, namespace):
                    break
            else:
                return resources[0]
        return None

    async def allowed(self, resource: Resource, namespace: str) -> bool:
        """Whether the user may list a resource; an empty namespace means all of them."""
        question = _Question(resource, namespace)
        self._asked.add(question)
        known = self._answers.known.get(question)
        if known is not None and self._reviewer.now < known[1]:
            return known[0]
        allowed = await self._reviewer.ask(self._user, question)
        self._answers.known[question] = allowed, self._reviewer.now + self._kept(allowed)
        return allowed

    def _kept(self, allowed: bool) -> float:
        if allowed:
            return timing.RIGHTS_GRANTED_KEPT
        kept = timing.RIGHTS_DENIED_KEPT + timing.RIGHTS_DENIED_KEPT_EACH * len(self._answers.known)
        return min(kept, timing.RIGHTS_GRANTED_KEPT)

    def _forget(self) -> None:
        """Keep the answers to present questions, and those of pages that are still valid."""
        now, known = self._reviewer.now, self._answers.known
        self._answers.known = {
            question: (allowed, until)
            for question, (allowed, until) in known.items()
            if question in self._asked or (now < until and not _is_shown(question.resource))
        }


def _is_shown(resource: Resource) -> bool:
    return any(resource in resources for resources in SHOWN)


def _unread(nodes: bool) -> tuple[str, ...]:
    return () if nodes else ("nodes: you may not list them, so the map shows the domains of gangs only",)


def _unread_namespaces(seen: frozenset[str], partly: list[tuple[str, Resource]]) -> tuple[str, ...]:
    kinds = ", ".join(resources[0].label for resources in SHOWN)
    which = "only those" if seen else "none: you see those"
    lines = [f"namespaces: {which} in which you may list {kinds}"]
    for name, lacks in partly[: timing.NAMES_SHOWN]:
        lines.append(f"namespace {name}: you may not list {lacks.label}")
    return tuple(lines)
