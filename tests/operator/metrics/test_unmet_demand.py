"""What gangs that wait for nodes need, as metrics."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.operator.metrics.unmet_demand import UnmetDemand, unmet_requests, waiting_gangs
from grove.plan.placement.assignment import PodSlot
from grove.plan.placement.demand import WantedPod
from tests.plan.placement.gangs import GPU, RACK, demand


@pytest.fixture(autouse=True)
def nothing_waits() -> None:
    """Gangs that wait in plans of other tests are counted in the same process."""
    waiting_gangs.clear()
    unmet_requests.clear()


def published(level: str) -> tuple[float, float]:
    """Gangs and GPUs."""
    return waiting_gangs.labels(level)._value.get(), unmet_requests.labels(level, GPU)._value.get()


def test_waiting_gangs_are_counted_until_they_have_nodes() -> None:
    unmet, bound = UnmetDemand(), {0: WantedPod(PodSlot("b", 0), "b-0", "r0-h0")}
    large, part = demand("a", 3, required=RACK), demand("b", 2, required=RACK, existing=bound)
    unmet.set(large.gang, large)
    unmet.set(large.gang, large)
    assert published(RACK) == (1, 24)
    unmet.set(part.gang, part)
    assert published(RACK) == (2, 32)
    unmet.set(part.gang, replace(part))
    assert published(RACK) == (2, 32)
    unmet.set(large.gang, None)
    unmet.set(part.gang, None)
    assert published(RACK) == (0, 0)


def test_gang_without_constraint_has_no_level() -> None:
    unmet, wanted = UnmetDemand(), demand("a", 1)
    unmet.set(wanted.gang, wanted)
    assert published("") == (1, 8)
    unmet.set(wanted.gang, None)
