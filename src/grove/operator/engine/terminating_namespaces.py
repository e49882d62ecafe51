"""Sets in terminating namespaces, where nothing can be created any more: creates are tried once, and the set
reports the errors of that attempt until it is gone."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import Cache
from grove.kube.executor.outcome import Outcome
from grove.operator.engine.errors import PassErrors, collect_errors
from grove.operator.keys import SetKey, WorkloadKey, parent_of
from grove.plan.model import UserError


class TerminatingNamespaces:
    """Learns from the outcomes of writes which sets are in terminating namespaces."""

    def __init__(self, sets: Cache[PodCliqueSet]) -> None:
        self._sets = sets
        self._uids: dict[SetKey, str] = {}
        self._errors: dict[WorkloadKey, PassErrors] = {}

    def includes(self, key: WorkloadKey) -> bool:
        """Whether the key belongs to a set in a terminating namespace."""
        if not self._uids:
            return False
        uid = self._uid(key)
        return bool(uid) and self._uids.get(parent_of(key)) == uid

    def errors(
        self, key: WorkloadKey, outcome: Outcome, user_errors: Sequence[UserError], now: float
    ) -> PassErrors:
        """The errors of this pass, or those of the last attempt if the namespace is terminating."""
        if self.includes(key) and not outcome.namespace_terminating:
            return self._errors.get(key, PassErrors())
        errors = collect_errors(outcome, now, user_errors)
        if outcome.namespace_terminating and (uid := self._uid(key)):
            self._uids[parent_of(key)] = uid
            self._errors[key] = errors
        return errors

    def forget(self, key: WorkloadKey) -> None:
        """Drop the state of a key that no longer exists."""
        self._errors.pop(key, None)
        if isinstance(key, SetKey):
            self._uids.pop(key, None)

    def _uid(self, key: WorkloadKey) -> str:
        parent = parent_of(key)
        found = self._sets.get(parent.namespace, parent.name)
        return found.metadata.uid if found is not None else ""
