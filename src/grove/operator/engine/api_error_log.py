"""Logs writes that the API server rejects: each error once, however often the write is retried.

The status of the set reports the same for its users; the log is for cluster administrators, because the
operator may lack an RBAC permission. It also remembers which keys exceeded a quota (see
`grove.operator.watches.quotas`).
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.kube.errors import ApiError, Forbidden, ServerError, TooManyRequests
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.logger import get_logger
from grove.operator.engine.errors import collect_errors
from grove.operator.engine.key_state import KeyState
from grove.operator.keys import Key, namespace_of

log = get_logger("grove.operator")

_WEBHOOK = "failed calling webhook"


class ApiErrorLog:
    """Logs errors that were not logged before, and keeps which keys exceeded a quota, by namespace."""

    def __init__(self) -> None:
        self._by_quota: dict[str, set[Key]] = {}

    def record(self, key: Key, state: KeyState, outcome: Outcome, code: str = "") -> None:
        """Log the errors of an outcome that were not logged before; a pass without errors clears them."""
        rejected = tuple(filter(_is_rejection, outcome.results))
        if any(map(_exceeds_quota, rejected)):
            self._by_quota.setdefault(namespace_of(key), set()).add(key)
        elif self._by_quota:
            self.forget(key)
        if not rejected:
            if state.logged_errors and not outcome.failed:
                state.logged_errors = frozenset()
            return
        errors = collect_errors(replace(outcome, results=rejected), 0, code=code)
        found = [error.description for error in errors.of_set]
        found += [error.description for each in errors.of_children.values() for error in each]
        for message in found:
            if message not in state.logged_errors:
                log.warning("write rejected", key=str(key), action="retry", reason=message)
        state.logged_errors = frozenset(found)

    def by_quota(self, namespace: str) -> list[Key]:
        """The keys of a namespace whose latest writes exceeded a quota."""
        return sorted(self._by_quota.get(namespace, ()), key=str)

    def forget(self, key: Key) -> None:
        """The key does not exist any more, or exceeds no quota any more."""
        keys = self._by_quota.get(namespace_of(key), set())
        keys.discard(key)
        if not keys:
            self._by_quota.pop(namespace_of(key), None)


def _is_rejection(result: Result) -> bool:
    """Whether the API server rejected the write. Failures of the server itself are logged by the client."""
    error = result.error
    if result.state is not IntentState.FAILED or not isinstance(error, ApiError):
        return False
    if isinstance(error, ServerError):  # a failing webhook of a third party is no failure of the server
        return _WEBHOOK in error.status.message
    return not isinstance(error, TooManyRequests)


def _exceeds_quota(result: Result) -> bool:
    """Whether a quota rejected it. A Status has no reason for quotas; their messages contain the word."""
    return isinstance(result.error, Forbidden) and "quota" in result.error.status.message
