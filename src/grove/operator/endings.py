"""Sets in namespaces that are on their way out. Nothing can be made there any more: it is tried once, and
what went wrong then is what there is to tell until they are gone."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.sets import PodCliqueSet
from grove.kube.cache import Cache
from grove.kube.outcome import Outcome
from grove.operator.blame import Blame, blame
from grove.operator.keys import SetKey, WorkloadKey, parent_of
from grove.plan.model import Complaint


class Endings:
    """Learns from outcomes which sets these are."""

    def __init__(self, sets: Cache[PodCliqueSet]) -> None:
        self._sets = sets
        self._uids: dict[SetKey, str] = {}
        self._errors: dict[WorkloadKey, Blame] = {}

    def in_vain(self, key: WorkloadKey) -> bool:
        """Whether nothing can be made for this key."""
        if not self._uids:
            return False
        uid = self._uid(key)
        return bool(uid) and self._uids.get(parent_of(key)) == uid

    def errors(
        self, key: WorkloadKey, outcome: Outcome, complaints: Sequence[Complaint], now: float
    ) -> Blame:
        """What went wrong, now or when it was last tried."""
        if self.in_vain(key) and not outcome.in_vain:
            return self._errors.get(key, Blame())
        errors = blame(outcome, now, complaints)
        if outcome.in_vain and (uid := self._uid(key)):
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
