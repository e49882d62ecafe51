"""Slow writes as last errors of their set: while in flight, with one timestamp, equal ones merged."""

from __future__ import annotations

from grove.kube.executor.keyed_executor import WriteProblem
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import ReplicaKey, SetKey
from grove.operator.reconcilers.slow_writes import SlowWrites

SET = SetKey("n", "wl")
PODS, GANGS = (
    WriteProblem("SLOW_CREATE", "creating pods", "slow"),
    WriteProblem("SLOW_PATCH", "patching gangs", "slow"),
)


class SlowWritesRun:
    """Replicas of one set, each recorded one second after the other."""

    def __init__(self) -> None:
        self.now = 0.0
        self.changed: list[SetKey] = []
        self.slow = SlowWrites(KeyStates(), lambda: self.now, self.changed.append)

    def record(self, replica: int, *writes: WriteProblem) -> None:
        self.now += 1
        self.slow.record(ReplicaKey("n", "wl", replica), writes)

    def messages(self) -> list[str]:
        return [error.description.partition("message: ")[2] for error in self.slow.errors(SET)]


def test_same_problem_of_many_replicas_is_one_error() -> None:
    run = SlowWritesRun()
    for replica in range(5):
        run.record(replica, PODS)
        assert run.slow.errors(SET)[0].observed_at == "1970-01-01T00:00:01Z"
    assert run.messages() == ["creating pods, cause: slow"]
    assert run.changed == [SET], "the other replicas change nothing"


def test_error_clears_with_last_slow_write() -> None:
    run = SlowWritesRun()
    run.record(0, PODS)
    run.record(1, PODS, GANGS)
    assert len(run.messages()) == 2
    run.record(1)
    assert len(run.messages()) == 1
    run.record(0)
    assert run.messages() == []
    assert run.changed == [SET] * 4
