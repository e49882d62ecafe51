"""One pass over a fabric domain: requeues, events and last errors by the outcome of its writes."""

from __future__ import annotations

import pytest

from grove.kube.errors import ApiStatus, Forbidden, StatusCause, StatusDetails
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.caches.registry import Caches
from grove.operator.keys import DomainKey, SetKey
from grove.operator.reconcilers.fabric import FabricReconciler
from tests.fabrics.builders import BOTH, a_set, clique

KEY = DomainKey("nvidia", "ns", "inference-0")


class Executor:
    """Every write ends in the state that the test sets."""

    def __init__(self, state: IntentState, error: Exception | None = None) -> None:
        self.state, self.error = state, error

    async def execute(self, key, intents) -> Outcome:
        return Outcome(tuple(Result(intent, self.state, error=self.error) for intent in intents))


def fabric_reconciler(executor, emitted):
    caches = Caches(fabrics=BOTH)
    caches.sets.replace([a_set(clique("worker"), auto="enabled")], "1")
    caches.domains["nvidia"].replace([], "1")
    return FabricReconciler(caches, executor, emitted.append, lambda: 7.0)


ENDING = Forbidden(
    "create",
    ApiStatus(code=403, details=StatusDetails(causes=(StatusCause(reason="NamespaceTerminating"),))),
)


@pytest.mark.parametrize(
    ("state", "error", "well", "again", "events"),
    [
        (IntentState.DONE, None, True, 7.0, ["ComputeDomainCreated"]),
        (IntentState.WAITING, None, True, None, []),
        (IntentState.CONFLICT, None, False, None, []),
        (IntentState.FAILED, ValueError("no"), False, None, ["ComputeDomainFailed"]),
        (IntentState.FAILED, ENDING, True, None, []),
    ],
)
async def test_domain_write_result_decides_requeue_and_events(state, error, well, again, events):
    emitted, enqueued = [], []
    found = fabric_reconciler(Executor(state, error), emitted)
    found.register_watches(lambda key, *_: enqueued.append(key))
    enqueued.clear()
    assert await found.reconcile(KEY) == (well, again)
    assert [event.reason for event in emitted] == events
    if "ComputeDomainFailed" in events:
        assert emitted[0].note == "Failed to create ComputeDomain for replica 0: no"
    assert (SetKey("ns", "inference") in enqueued) is ("ComputeDomainFailed" in events)


async def test_failed_domain_is_observed_with_its_error():
    emitted = []
    found = fabric_reconciler(Executor(IntentState.FAILED, ValueError("no")), emitted)
    for _ in range(2):
        await found.reconcile(KEY)
    (note,) = [
        note for note in found.domain_observations(a_set(clique("worker"), auto="enabled")) if note.failure
    ]
    assert (note.name, note.failure.code) == ("inference-0", "ERR_SYNC_COMPUTEDOMAIN")
