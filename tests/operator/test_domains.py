"""Work on a fabric domain: what is tried again, what is waited for, what is told."""

from __future__ import annotations

import pytest

from grove.kube.errors import Forbidden, Status, StatusCause, StatusDetails
from grove.kube.outcome import Outcome, Result, State
from grove.operator.caches import Caches
from grove.operator.domains import Domains
from grove.operator.keys import DomainKey, SetKey
from tests.fabrics.builders import BOTH, a_set, clique

KEY = DomainKey("nvidia", "ns", "inference-0")


class Executor:
    """Every write ends as the test says."""

    def __init__(self, state: State, error: Exception | None = None) -> None:
        self.state, self.error = state, error

    async def execute(self, key, intents) -> Outcome:
        return Outcome(tuple(Result(intent, self.state, error=self.error) for intent in intents))


def domains(executor, told):
    caches = Caches(fabrics=BOTH)
    caches.sets.replace([a_set(clique("worker"), auto="enabled")], "1")
    caches.domains["nvidia"].replace([], "1")
    return Domains(caches, executor, told.append, lambda: 7.0)


ENDING = Forbidden(
    "create",
    Status(code=403, details=StatusDetails(causes=(StatusCause(reason="NamespaceTerminating"),))),
)


@pytest.mark.parametrize(
    ("state", "error", "well", "again", "events"),
    [
        (State.DONE, None, True, 7.0, ["ComputeDomainCreated"]),
        (State.WAITING, None, True, None, []),
        (State.CONFLICT, None, False, None, []),
        (State.FAILED, ValueError("no"), False, None, ["ComputeDomainFailed"]),
        (State.FAILED, ENDING, True, None, []),
    ],
)
async def test_what_follows_from_how_a_write_ended(state, error, well, again, events):
    told, woken = [], []
    found = domains(Executor(state, error), told)
    found.wire(lambda key, *_: woken.append(key))
    woken.clear()
    assert await found.bring_in_order(KEY) == (well, again)
    assert [event.reason for event in told] == events
    if "ComputeDomainFailed" in events:
        assert told[0].note == "Failed to create ComputeDomain for replica 0: no"
    assert (SetKey("ns", "inference") in woken) is ("ComputeDomainFailed" in events)


async def test_what_stands_is_told_once_until_it_is_over():
    told = []
    found = domains(Executor(State.FAILED, ValueError("no")), told)
    for _ in range(2):
        await found.bring_in_order(KEY)
    (note,) = [note for note in found.notes(a_set(clique("worker"), auto="enabled")) if note.failure]
    assert (note.name, note.failure.code) == ("inference-0", "ERR_SYNC_COMPUTEDOMAIN")
