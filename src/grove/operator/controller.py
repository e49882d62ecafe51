"""The loop, and only this: observe, plan, execute, publish, and know when to look again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from grove.api.intents import Occurrence
from grove.api.parts import LastError
from grove.api.sets import PodCliqueSet
from grove.kube.executor import Executor
from grove.kube.keyed import KeyedExecutor
from grove.kube.outcome import Outcome
from grove.kube.queue import Queue
from grove.kube.retry import Backoff
from grove.operator.blame import Blame, Part, completed, undone, unfinished
from grove.operator.caches import Caches
from grove.operator.counterparts import Counterparts
from grove.operator.domains import Domains
from grove.operator.endings import Endings
from grove.operator.environs import Environs
from grove.operator.grievances import Grievances
from grove.operator.keys import (
    DomainKey,
    Key,
    PlacementKey,
    ReplicaKey,
    SetKey,
    TopologyKey,
    WorkloadKey,
    parent_of,
    tenant_of,
)
from grove.operator.nodes import Nodes
from grove.operator.observe import Observer
from grove.operator.offload import Busy
from grove.operator.placement import Placement
from grove.operator.planning import Parts, Planner
from grove.operator.publish import Publisher, intents
from grove.operator.quotas import QuotaWakes
from grove.operator.refusals import Refusals
from grove.operator.repeats import Repeats
from grove.operator.reports import Reports
from grove.operator.retirements import Retirements
from grove.operator.schedulers import Schedulers
from grove.operator.slow_writes import SlowWrites
from grove.operator.strays import find_lost, put_back
from grove.operator.tell import Homes, homes, losses, occurrences, stories
from grove.operator.topologies import Topologies
from grove.operator.undecodable import UndecodableObjects
from grove.operator.wakes import leisure, wire
from grove.plan.model import Draft, Plan
from grove.plan.placement import Assigner, Unassigned
from grove.schedulers.registry import Backends

log = structlog.get_logger("grove.operator")

_NOTHING = Outcome(())
_GATHERING = 0.2
_MOST_STATUSES = 1000  # of one pass: a replica may have thousands of cliques
_GATHERING_EACH = 0.00002  # seconds for each replica of the set


class Controller:
    """Brings every key in order, whenever something about it changes."""

    def __init__(
        self,
        caches: Caches,
        executor: Executor,
        tell: Callable[[Occurrence], None],
        *,
        assigner: Assigner | None = None,
        topology_aware: bool = False,
        backends: Backends | None = None,
        workers: int = 64,
        backoff: Backoff | None = None,
        init_image: str = "",
        nodes: Nodes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._caches, self._executor, self._tell, self._clock = caches, executor, tell, clock
        self._placement = Placement(assigner or Unassigned())
        self._topologies = Topologies(caches, enabled=topology_aware)
        schedulers = Schedulers(caches, backends)
        self._publisher: Publisher[Key] = Publisher()
        self._slow = SlowWrites(clock, self._gather)
        self._writes: KeyedExecutor[Key] = KeyedExecutor(
            executor, lambda: self.queue, self._slow.note, self._publisher.defer
        )
        self._domains = Domains(caches, self._writes, tell, clock)
        self._observer = Observer(
            caches, self._placement, init_image, self._topologies, schedulers, self._domains.neighbourhood
        )
        executor.limiter.on_room = self._use_room
        self._reports = Reports()
        self._retirements = Retirements(self._observer)
        self._repeats, self._refusals = Repeats(), Refusals()
        self._endings, self._grievances = Endings(caches.sets), Grievances(caches)
        self.queue: Queue[Key] = Queue(
            "workloads",
            self._work,
            workers=workers,
            place=self._reports.place,
            tenant=tenant_of,
            backoff=backoff,
        )
        parts = Parts(
            caches=caches,
            observer=self._observer,
            reports=self._reports,
            endings=self._endings,
            retirements=self._retirements,
            topologies=self._topologies,
            domains=self._domains,
            errors=self._errors_of,
        )
        self._planner = Planner(parts, self._gather)
        self._counterparts = None
        if topology_aware:
            environs = Environs(caches, nodes or Nodes(), self.queue.wake)
            self._counterparts = Counterparts(caches, self._writes, backends, tell, environs)
        wire(caches, self.queue.wake, topologies=topology_aware, leisure=lambda: leisure(self.queue.backlog))
        self._domains.wire(self.queue.wake)
        self._undecodable = UndecodableObjects(
            reported_on_themselves=(caches.sets, caches.topologies, caches.topology_bindings),
            reported_on_sets=(*caches.parts, *caches.grants, caches.claims),
            emit=tell,
            wake=self.queue.wake,
            clock=clock,
        )
        QuotaWakes(caches.quotas, self._refusals, self.queue)

    async def _work(self, key: Key) -> None:
        """One pass over one key."""
        if not await self._writes.verify(key):
            return
        if isinstance(key, PlacementKey):
            self._place()
        elif isinstance(key, TopologyKey | DomainKey):
            await self._bring_in_step(key)
        else:
            await self._bring_in_order(key)
        self._writes.end_pass(key)

    async def _bring_in_order(self, key: WorkloadKey) -> None:
        now = self._clock()
        if isinstance(key, ReplicaKey) and not await find_lost(key, self._observer, self._writes):
            self.queue.wake(key, None, failed=True)
            return
        try:
            plan = await self._plan(key, now)
        except Busy as busy:
            self.queue.wake(key, busy.at)
            return
        if plan is None:
            self._forget(key)
            return
        known = homes(self._caches, plan.intents)
        if plan.intents:
            self._planner.told(key)
        outcome = await self._writes.execute(key, plan.intents) if plan.intents else _NOTHING
        if strays := put_back(outcome):
            await self._writes.execute(key, strays)
        errors = self._endings.errors(key, outcome, plan.complaints, now)
        if plan.unplaced and isinstance(key, ReplicaKey) and self._placement.ask(key, plan.unplaced):
            self.queue.wake(PlacementKey())
        self._refusals.note(key, _NOTHING if self._endings.in_vain(key) else outcome)
        left = unfinished(outcome) | ({None} if plan.partial else frozenset())
        goes_on = self._planner.note_failures(key, plan, undone(outcome))
        self._report(key, plan, errors, left)
        self._tell_news(key, plan, outcome, known)
        stuck = self._repeats.again(key, plan.intents if outcome.done else ())
        retry = outcome.failed or outcome.outdated or stuck
        wake_at = None if plan.wake_at is None else self._loop_time() + plan.wake_at - now
        if plan.intents and (outcome.done or outcome.outdated) and not outcome.failed:
            # What was written is in the cache: the status of what is true now comes with the next pass.
            soon = self._loop_time() + leisure(self.queue.backlog)
            self.queue.wake(key, wake_at if retry else soon, failed=retry)
            return
        left |= {None} if self._endings.in_vain(key) else frozenset()
        told, later = await self._publish(key, plan.drafts, errors, left)
        if later is None:
            self._planner.told(key)
        rest = self._loop_time() if goes_on else None
        moments = [moment for moment in (wake_at, later, rest) if moment is not None]
        self.queue.wake(key, min(moments, default=None), failed=retry or not told)

    async def _bring_in_step(self, key: TopologyKey | DomainKey) -> None:
        if isinstance(key, DomainKey):
            well, due = await self._domains.bring_in_order(key)
            moment = None if due is None else self._loop_time() + due - self._clock()
        else:
            assert self._counterparts is not None
            well, again = await self._counterparts.bring_in_order(key, self._clock())
            moment = self._loop_time() if again else None
        self.queue.wake(key, moment if well else None, failed=not well)

    def _use_room(self, room: int) -> None:
        for key in self._publisher.call(room):
            self.queue.wake(key)

    def _place(self) -> None:
        for replica in self._placement.decide():
            self.queue.wake(replica)

    def _workload(self, key: WorkloadKey) -> PodCliqueSet | None:
        parent = parent_of(key)
        return self._caches.sets.get(parent.namespace, parent.name)

    async def _plan(self, key: WorkloadKey, now: float) -> Plan | None:
        try:
            return await self._planner.plan(key, now)
        except Busy:
            raise
        except Exception as mistake:  # of this workload alone, whose user is told; the queue logs it
            if isinstance(key, ReplicaKey) and self._reports.admit(key, mistake, now):
                self.queue.wake(parent_of(key))
            raise

    def _gather(self, key: SetKey) -> None:
        """What several replicas of a set report within a moment is added up once. The larger a set is, the
        longer that takes, and the longer is the moment."""
        pause = _GATHERING + _GATHERING_EACH * len(self._reports.of(key))
        self.queue.wake(key, self._loop_time() + pause)

    def _errors_of(self, key: SetKey) -> tuple[LastError, ...]:
        """What the status of a set reports besides the errors of its replicas."""
        return (*self._reports.of_set(key), *self._slow.errors(key), *self._undecodable.errors(key))

    def _report(self, key: WorkloadKey, plan: Plan, errors: Blame, left: frozenset[Part | None]) -> None:
        """Tell the set how a replica stands, or what is wrong with itself, if that is news."""
        if isinstance(key, ReplicaKey):
            news = self._reports.note(key, self._workload(key), plan, errors, left)
        else:
            news = self._reports.note_set(key, errors)
        if news:
            self._gather(parent_of(key))

    async def _publish(
        self, key: WorkloadKey, drafts: Sequence[Draft], errors: Blame, left: frozenset[Part | None]
    ) -> tuple[bool, float | None]:
        """Publish what is due. Returns whether that went well, and when more will be due."""
        told = tuple(completed(draft, errors, left) for draft in drafts)
        busy = not self._executor.limiter.room
        due, later = self._publisher.consider(key, told, self._loop_time(), busy=busy)
        if not due:
            return True, later
        due, rest = due[:_MOST_STATUSES], due[_MOST_STATUSES:]
        outcome = await self._writes.execute(key, intents(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        if not self._endings.in_vain(key):
            for lost in losses(self._caches, due, outcome):
                self._tell(lost)
        return not (outcome.failed or outcome.outdated), self._loop_time() if rest else None

    def _tell_news(self, key: WorkloadKey, plan: Plan, outcome: Outcome, known: Homes) -> None:
        for news in self._grievances.news(key, key.namespace, plan.complaints):
            self._tell(news)
        workload = self._workload(key) if outcome.results else None
        if workload is not None and not self._endings.in_vain(key):
            happened = occurrences(self._caches, workload, outcome, known)
            for news in (*happened, *stories(workload, plan, outcome)):
                self._tell(news)

    def _forget(self, key: WorkloadKey) -> None:
        of_workloads = (self._repeats, self._refusals, self._grievances, self._endings, self._planner)
        for memory in (self.queue, self._writes, self._publisher, *of_workloads):
            memory.forget(key)
        if isinstance(key, ReplicaKey):
            self._placement.forget(key)
        else:
            for remembered in (self._reports, self._slow, self._retirements):
                remembered.forget(key)

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()
