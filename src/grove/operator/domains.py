"""Fabric domains: one key for each, worked on by the leader."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from grove.api.errors import ErrorCode, Operation, describe
from grove.api.events import EventReason, Reporter
from grove.api.intents import Create, Delete, DeleteCollection, Intent, ObjectRef, Occurrence
from grove.api.parts import LastError
from grove.api.sets import PodCliqueSet
from grove.fabrics.provider import Scope
from grove.kube.keyed import KeyedExecutor
from grove.kube.outcome import Outcome, State
from grove.operator.caches import Caches
from grove.operator.domain_census import domain_failures
from grove.operator.keys import DomainKey, Key, SetKey
from grove.operator.neighbourhood import Neighbourhood
from grove.operator.stirrings import Wake, wire_domains
from grove.plan.domain_model import DomainPlan, DomainSnapshot, User
from grove.plan.domain_status import DomainNote
from grove.plan.domains import plan_domain
from grove.plan.moments import rfc3339

log = structlog.get_logger("grove.operator")


class Domains:
    """Brings domains in order, and tells the sets that need them how that goes."""

    def __init__(
        self,
        caches: Caches,
        executor: KeyedExecutor[Key],
        tell: Callable[[Occurrence], None],
        clock: Callable[[], float],
    ) -> None:
        self._caches, self._executor, self._tell, self._clock = caches, executor, tell, clock
        self._wake: Wake = lambda _: None
        self.neighbourhood = Neighbourhood(caches)
        self._told: dict[DomainKey, set[tuple[str, ...]]] = {}
        """What has been told about a domain, to whom: it is told again only after it was no longer so."""
        self._failures: dict[DomainKey, LastError] = {}
        """Domains that could not be made, and why."""
        self._busy: dict[DomainKey, str] = {}
        """Domains whose pods find no node, and who has the nodes."""

    def wire(self, wake: Wake) -> None:
        """From now on, changes wake domains, and domains those who need them."""
        self._wake = wake
        if len(self._caches.fabrics):
            wire_domains(self._caches, self.neighbourhood, wake)

    def notes(self, workload: PodCliqueSet) -> list[DomainNote]:
        """How the domains of a set stand to it."""
        return self.neighbourhood.notes(workload, self._failures, self._busy)

    async def bring_in_order(self, key: DomainKey) -> tuple[bool, float | None]:
        """One pass over one domain. Says whether it went well, and when another pass is due; wakes the sets
        that should tell how it stands."""
        snapshot, now = self.neighbourhood.snapshot(key), self._clock()
        if snapshot is None:
            return True, None
        plan = plan_domain(snapshot, now)
        outcome = await self._executor.execute(key, plan.intents) if plan.intents else Outcome(())
        self._tell_remarks(key, snapshot, plan, outcome)
        news = self._note_failures(key, snapshot, outcome)
        if self._note_busy(key, plan) or news:
            for user in snapshot.users:
                self._wake(SetKey(user.workload.metadata.namespace, user.workload.metadata.name))
        if not (snapshot.found or snapshot.users):
            self._told.pop(key, None)
        if outcome.in_vain:  # its namespace goes, and with it those who need it
            return True, None
        well = not outcome.failed and not outcome.outdated
        return well, now if plan.intents and outcome.done else plan.wake_at

    def _note_busy(self, key: DomainKey, plan: DomainPlan) -> bool:
        """What the condition of the sets says about those who have the nodes; whether that is news."""
        busy = (remark.note for remark in plan.remarks if remark.reason is EventReason.IMEX_CHANNEL_BUSY)
        before, words = self._busy.pop(key, ""), next(busy, "")
        if words:
            self._busy[key] = words
        return words != before

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

    def _note_failures(self, key: DomainKey, snapshot: DomainSnapshot, outcome: Outcome) -> bool:
        """What could not be done is told each time that it is tried: the tries become rare by themselves.
        Says whether there is another failure than before, or none any more."""
        before, now = self._failures.pop(key, None), rfc3339(self._clock())
        for result in outcome.results if not outcome.in_vain else ():
            intent = result.intent
            if result.state is not State.FAILED or isinstance(intent, DeleteCollection):
                continue
            domain_failures.labels(key.vendor, type(intent).__name__.lower()).inc()
            log.warning("domain not in order", key=str(key), action=intent.id, reason=str(result.error))
            if isinstance(intent, Create | Delete):
                for user in snapshot.users:
                    reason, note = _failed_words(snapshot, user, intent, result.error)
                    self._say(user.workload, reason, note, warning=True)
            if isinstance(intent, Create):
                self._failures[key] = _failure(intent, str(result.error), before, now)
        return self._failures.get(key) != before

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


def _failure(intent: Create, cause: str, before: LastError | None, now: str) -> LastError:
    """The error as the set tells it; one that is known already keeps its date."""
    code = ErrorCode.SYNC_COMPUTE_DOMAIN.value
    words = describe(Operation.SYNC, code, f"could not {intent.id}", cause)
    if before is not None and before.description == words:
        return before
    return LastError(code, words, now)


def _failed_words(
    snapshot: DomainSnapshot, user: User, intent: Intent, error: object
) -> tuple[EventReason, str]:
    """What a set is told about a write that failed."""
    kind, name = snapshot.provider.api.name, snapshot.name
    if isinstance(intent, Create):
        shared = user.stay.demand.scope is Scope.SHARED
        which = name if shared else f"for replica {user.stay.replicas[0]}"
        return EventReason.COMPUTE_DOMAIN_FAILED, f"Failed to create {kind} {which}: {error}"
    return EventReason.COMPUTE_DOMAIN_DELETE_FAILED, f"Could not delete {kind} {name}: {error}"
