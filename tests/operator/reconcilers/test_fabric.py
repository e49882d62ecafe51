"""One pass over a fabric domain: requeues, events and last errors by the outcome of its writes."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.intents import EventRecord
from grove.kube.errors import ApiStatus, Forbidden, StatusCause, StatusDetails
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.caches.registry import Caches
from grove.operator.engine.engine import Engine
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey
from grove.operator.observers.fabric import FabricLookup
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.fabric import DomainReconciler
from tests.fabrics.builders import BOTH, a_set, clique
from tests.kube.executor.stub_transport import StubTransport, refused

KEY = DomainKey("nvidia", "ns", "inference-0")
REPLICA = ReplicaKey("ns", "inference", 0)
REPORTED = [SetKey("ns", "inference"), REPLICA]
ENDING = Forbidden(
    "create",
    ApiStatus(code=403, details=StatusDetails(causes=(StatusCause(reason="NamespaceTerminating"),))),
)


class DomainRun:
    """Passes over a domain that is to be created; every write ends in the given state."""

    def __init__(self, state: IntentState, error: Exception | None = None) -> None:
        self.state, self.error = state, error
        self.emitted: list[EventRecord] = []
        self.enqueued: list[Key] = []
        self.caches = caches = Caches(fabrics=BOTH)
        caches.sets.replace([a_set(clique("worker"), auto="enabled")], "1")
        caches.domains["nvidia"].replace([], "1")
        executor = Executor(StubTransport(lambda _: refused(403, "Forbidden")), ())
        executor.execute = self.execute  # type: ignore[method-assign]
        self.engine = Engine(executor, self.emitted.append, clock=lambda: 7.0)
        self.domains = DomainReconciler(FabricLookup(caches), self.engine.states, self.enqueued.append)
        self.engine.add(DomainKey, self.domains)

    async def execute(self, intents: Any, _progress: object) -> Outcome:
        return Outcome(tuple(Result(intent, self.state, error=self.error) for intent in intents))


@pytest.mark.parametrize(
    ("state", "error", "again", "events"),
    [
        (IntentState.DONE, None, "now", ["ComputeDomainCreated"]),
        (IntentState.WAITING, None, "", []),
        (IntentState.CONFLICT, None, "retry", []),
        (IntentState.FAILED, ValueError("no"), "retry", ["ComputeDomainFailed"]),
        (IntentState.FAILED, ENDING, "", []),
    ],
)
async def test_domain_write_result_decides_requeue_and_events(state, error, again, events):
    run = DomainRun(state, error)
    requeued = []
    run.engine.queue.enqueue = lambda key, at, *, failed=False: requeued.append((at is not None, failed))
    await run.engine.reconcile(KEY)
    assert requeued == [{"now": (True, False), "retry": (False, True), "": (False, False)}[again]]
    assert [event.reason for event in run.emitted] == events
    if "ComputeDomainFailed" in events:
        assert run.emitted[0].note == "Failed to create ComputeDomain for replica 0: no"
        assert run.enqueued == REPORTED


async def test_failed_domain_is_reported_to_its_set():
    run = DomainRun(IntentState.FAILED, ValueError("no"))
    for _ in range(2):
        await run.engine.reconcile(KEY)
    (failed,) = [
        domain
        for domain in run.domains.of_set(a_set(clique("worker"), auto="enabled"))
        if domain.report.failure
    ]
    assert (failed.name, failed.report.failure.code) == ("inference-0", "ERR_SYNC_COMPUTEDOMAIN")
    assert run.enqueued == REPORTED, "the second pass has the same error"


async def test_failed_domain_is_reported_to_its_replica():
    run = DomainRun(IntentState.FAILED, ValueError("no"))
    await run.engine.reconcile(KEY)
    snapshot = Observer(run.caches, run.engine.states).replica(REPLICA)
    ((domain,),) = snapshot.domains["worker"].values()
    assert domain.report.failure.code == "ERR_SYNC_COMPUTEDOMAIN"
