"""Metrics of gangs: the time until a condition is true, observed once."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Histogram

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.podgang import PodGang, PodGangSpec, PodGangStatus
from grove.operator.metrics.workloads import GangConditionTimer

READY = "Ready"
CREATED_AT = 1_774_958_400.0  # 2026-03-31T12:00:00Z


def gang(status: str = "") -> PodGang:
    conditions = (Condition(type=READY, status=status, reason="", message=""),) if status else ()
    return PodGang(
        metadata=ObjectMeta(uid="1", creation_timestamp="2026-03-31T12:00:00Z"),
        spec=PodGangSpec(pod_groups=()),
        status=PodGangStatus(conditions=conditions),
    )


class TimerRun:
    """A timer with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = CREATED_AT
        self._registry = CollectorRegistry()
        histogram = Histogram("waited", "", registry=self._registry)
        self.timer = GangConditionTimer(READY, histogram, lambda: self.now)

    def changed(self, after: float, old: PodGang | None, new: PodGang | None) -> None:
        self.now = CREATED_AT + after
        self.timer.on_gang(old, new)

    @property
    def observed(self) -> tuple[float | None, float | None]:
        """The number of observations, and the sum of their seconds."""
        value = self._registry.get_sample_value
        return value("waited_count"), value("waited_sum")


def test_timer_observes_creation_to_condition():
    run = TimerRun()
    run.changed(0.3, None, gang())
    run.changed(1, gang(), gang("False"))
    assert run.observed == (0, 0)
    run.changed(2.8, gang("False"), gang("True"))
    assert run.observed == (1, 2.5)


def test_timer_observes_first_time_only():
    run = TimerRun()
    run.changed(0, None, gang())
    for moment, before, after in ((1, "", "True"), (2, "True", "False"), (3, "False", "True")):
        run.changed(moment, gang(before), gang(after))
    assert run.observed == (1, 1)


@pytest.mark.parametrize(("status", "expected"), [("False", (1, 60)), ("True", (0, 0))])
def test_existing_gang_is_timed_unless_condition_is_true(status, expected):
    run = TimerRun()
    run.timer.on_existing(gang(status))
    run.changed(60, gang(status), gang("True"))
    assert run.observed == expected


def test_gang_added_with_condition_true_is_not_timed():
    run = TimerRun()
    run.changed(0, None, gang("True"))
    run.changed(5, gang("True"), gang("True"))
    assert run.observed == (0, 0)


def test_deleted_gang_is_forgotten():
    run = TimerRun()
    run.changed(0, None, gang())
    run.changed(1, gang(), None)
    assert run.timer._started_at == {}
