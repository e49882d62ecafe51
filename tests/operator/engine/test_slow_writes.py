"""Slow writes in the errors of their set: there while they are in flight, with one date, and once for all."""

from __future__ import annotations

from grove.kube.executor.keyed_executor import WriteProblem
from grove.operator.engine.slow_writes import SlowWrites
from grove.operator.keys import DomainKey, ReplicaKey, SetKey

SET = SetKey("n", "wl")
PODS, GANGS = (
    WriteProblem("SLOW_CREATE", "creating pods", "slow"),
    WriteProblem("SLOW_PATCH", "patching gangs", "slow"),
)


class Stage:
    """Replicas of one set, noted once a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.news: list[SetKey] = []
        self.slow = SlowWrites(lambda: self.now, self.news.append)

    def record(self, replica: int, *writes: WriteProblem) -> None:
        self.now += 1
        self.slow.record(ReplicaKey("n", "wl", replica), writes)

    def said(self) -> list[str]:
        return [error.description.partition("message: ")[2] for error in self.slow.errors(SET)]


def test_many_replicas_with_one_trouble_are_one_error_with_one_date() -> None:
    stage = Stage()
    for replica in range(5):
        stage.record(replica, PODS)
        assert stage.slow.errors(SET)[0].observed_at == "1970-01-01T00:00:01Z"
    assert stage.said() == ["creating pods, cause: slow"]
    assert stage.news == [SET], "the rest is no news"


def test_an_error_ends_with_the_last_write_that_is_slow() -> None:
    stage = Stage()
    stage.record(0, PODS)
    stage.record(1, PODS, GANGS)
    assert len(stage.said()) == 2
    stage.record(1)
    assert len(stage.said()) == 1
    stage.record(0)
    assert stage.said() == []
    assert stage.news == [SET] * 4


def test_keys_without_a_set_report_nothing() -> None:
    stage = Stage()
    stage.slow.record(DomainKey("nvidia", "n", "d"), (PODS,))
    assert stage.news == []
