"""Sets in namespaces that are on their way out. Nothing can be made there any more: it is tried once, and
what went wrong then is what there is to tell until they are gone."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import Cache
from grove.kube.executor.outcome import Outcome
from grove.operator.engine.errors import PassErrors, collect_errors
from grove.operator.keys import SetKey, WorkloadKey, parent_of
from grove.plan.model import UserError


class TerminatingNamespaces:
    """Learns from outcomes which sets these are."""

    def __init__(self, sets: Cache[PodCliqueSet]) -> None:
        self._sets = sets
        self._uids: dict[SetKey, str] = {}
        self._errors: dict[WorkloadKey, PassErrors] = {}

    def includes(self, key: WorkloadKey) -> bool:
        """Whether nothing can be made for this key."""
        if not self._uids:
            return False
        uid = self._uid(key)
        return bool(uid) and self._uids.get(parent_of(key)) == uid

    def errors(
        self, key: WorkloadKey, outcome: Outcome, user_errors: Sequence[UserError], now: float
    ) -> PassErrors:
        """What went wrong, now or when it was last tried."""
        if self.includes(key) and not outcome.namespace_terminating:
            return self._errors.get(key, PassErrors())
        errors = collect_errors(outcome, now, user_errors)
        if outcome.namespace_terminating and (uid := self._uid(key)):
            self._uids[parent_of(key)] = uid
            self._errors[key] = errors
        return errors

    def forget(self, key: WorkloadKey) -> None:
        """There is no such key any more."""
        self._errors.pop(key, None)
        if isinstance(key, SetKey):
            self._uids.pop(key, None)

    def _uid(self, key: WorkloadKey) -> str:
        parent = parent_of(key)
        found = self._sets.get(parent.namespace, parent.name)
        return found.metadata.uid if found is not None else ""
