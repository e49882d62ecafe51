"""What the API server refuses, in the log: once for each trouble, however often it is tried again.

Whoever looks at a set finds it in the status; this is for whoever looks at the operator: it may lack a right.
"""

from __future__ import annotations

import structlog
from msgspec.structs import replace

from grove.kube.errors import ApiError, Forbidden, ServerError, TooManyRequests
from grove.kube.outcome import Outcome, Result, State
from grove.operator.blame import blame
from grove.operator.keys import WorkloadKey

log = structlog.get_logger("grove.operator")

_WEBHOOK = "failed calling webhook"


class Refusals:
    """Remembers what was said last of each key."""

    def __init__(self) -> None:
        self._said: dict[WorkloadKey, frozenset[str]] = {}
        self._by_quota: dict[str, set[WorkloadKey]] = {}

    def note(self, key: WorkloadKey, outcome: Outcome) -> None:
        """Say what is refused now and was not before; what was carried out is not remembered."""
        refused = tuple(filter(_refused, outcome.results))
        if any(map(_exceeds_quota, refused)):
            self._by_quota.setdefault(key.namespace, set()).add(key)
        elif self._by_quota:
            self._forget_quota(key)
        if not refused:
            if not outcome.failed:
                self._said.pop(key, None)
            return
        errors = blame(replace(outcome, results=refused), 0)
        found = [error.description for error in errors.of_set]
        found += [error.description for part in errors.of_parts.values() for error in part]
        for words in found:
            if words not in self._said.get(key, ()):
                log.warning("refused", key=str(key), action="retry", reason=words)
        self._said[key] = frozenset(found)

    def by_quota(self, namespace: str) -> list[WorkloadKey]:
        """The keys of a namespace whose latest writes exceeded a quota."""
        return sorted(self._by_quota.get(namespace, ()))

    def forget(self, key: WorkloadKey) -> None:
        """There is no such key any more."""
        self._said.pop(key, None)
        self._forget_quota(key)

    def _forget_quota(self, key: WorkloadKey) -> None:
        keys = self._by_quota.get(key.namespace, set())
        keys.discard(key)
        if not keys:
            self._by_quota.pop(key.namespace, None)


def _refused(result: Result) -> bool:
    """Answered with no; a server that is not well is told of by whoever speaks to it."""
    error = result.error
    if result.state is not State.FAILED or not isinstance(error, ApiError):
        return False
    if isinstance(error, ServerError):  # a webhook of a third party that fails is none of the server
        return _WEBHOOK in error.status.message
    return not isinstance(error, TooManyRequests)


def _exceeds_quota(result: Result) -> bool:
    """Quotas have no reason of their own in a Status; what they say begins with their name."""
    return isinstance(result.error, Forbidden) and "quota" in result.error.status.message
