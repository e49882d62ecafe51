"""Fabric domains: one key for each, worked on by the leader."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from grove.api.events import EventReason, Reporter
from grove.api.intents import Create, Delete, DeleteCollection, ObjectRef, Occurrence
from grove.api.sets import PodCliqueSet
from grove.kube.executor import Executor
from grove.kube.outcome import Outcome, State
from grove.operator.domain_census import domain_failures
from grove.operator.keys import DomainKey, Key, SetKey
from grove.operator.neighbourhood import Neighbourhood
from grove.plan.domains import DomainPlan, DomainSnapshot, failed_words, plan_domain

log = structlog.get_logger("grove.operator")


class Domains:
    """Brings domains in order, and tells the sets that need them how that goes."""

    def __init__(
        self, neighbourhood: Neighbourhood, executor: Executor, tell: Callable[[Occurrence], None]
    ) -> None:
        self._neighbourhood, self._executor, self._tell = neighbourhood, executor, tell
        self._told: dict[DomainKey, set[tuple[str, ...]]] = {}
        """What has been told about a domain, to whom: it is told again only after it was no longer so."""
        self.failures: dict[DomainKey, str] = {}
        """Domains that could not be made, and why."""

    async def bring_in_order(self, key: DomainKey, wake: Callable[[Key], None]) -> tuple[bool, bool]:
        """One pass over one domain. Says whether it went well, and whether another pass is due; wakes the
        sets that should tell how it stands."""
        snapshot = self._neighbourhood.snapshot(key)
        if snapshot is None:
            return True, False
        plan = plan_domain(snapshot)
        outcome = await self._executor.execute(plan.intents) if plan.intents else Outcome(())
        self._tell_remarks(key, snapshot, plan, outcome)
        for parent in self._note_failures(key, snapshot, outcome):
            wake(parent)
        if not (snapshot.found or snapshot.users):
            self._told.pop(key, None)
        well = not outcome.failed and not outcome.outdated
        return well, bool(plan.intents) and well

    def _tell_remarks(
        self, key: DomainKey, snapshot: DomainSnapshot, plan: DomainPlan, outcome: Outcome
    ) -> None:
        done = {result.intent.id for result in outcome.results if result.state is State.DONE}
        standing: set[tuple[str, ...]] = set()
        for remark in plan.remarks:
            if remark.intent:
                if remark.intent in done:
                    self._say(remark.workload, remark.reason, remark.note, remark.warning)
                continue
            uid = snapshot.found.metadata.uid if snapshot.found else ""
            fact = (uid, remark.workload.metadata.uid, remark.reason.value)
            standing.add(fact)
            if fact not in self._told.get(key, set()):
                self._say(remark.workload, remark.reason, remark.note, remark.warning)
        self._told[key] = standing

    def _note_failures(self, key: DomainKey, snapshot: DomainSnapshot, outcome: Outcome) -> set[SetKey]:
        """What could not be done is told each time that it is tried: the tries become rare by themselves."""
        before = self.failures.pop(key, "")
        for result in outcome.results:
            intent = result.intent
            if result.state is not State.FAILED or isinstance(intent, DeleteCollection):
                continue
            domain_failures.labels(key.vendor, type(intent).__name__.lower()).inc()
            log.warning("domain not in order", key=str(key), action=intent.id, reason=str(result.error))
            if isinstance(intent, Create | Delete):
                for user in snapshot.users:
                    reason, note = failed_words(snapshot, user, intent, result.error)
                    self._say(user.workload, reason, note, warning=True)
            if isinstance(intent, Create):
                self.failures[key] = str(result.error)
        if self.failures.get(key, "") == before:
            return set()
        return {
            SetKey(user.workload.metadata.namespace, user.workload.metadata.name) for user in snapshot.users
        }

    def _say(self, workload: PodCliqueSet, reason: EventReason, note: str, warning: bool) -> None:
        kind, meta = PodCliqueSet.KIND, workload.metadata
        self._tell(
            Occurrence(
                ObjectRef(kind.api_version, kind.name, meta.name, meta.namespace, meta.uid),
                reason.value,
                note,
                action="Sync",
                warning=warning,
                reporter=Reporter.SET.value,
            )
        )
