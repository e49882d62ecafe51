"""Rounds of placement: what they count."""

from __future__ import annotations

from msgspec.structs import replace
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from grove.kube.executor.outcome import Outcome
from grove.operator.engine.errors import PassErrors
from grove.operator.engine.reconciler import PassResult
from grove.operator.keys import PlacementKey
from grove.operator.reconcilers.placement import PlacementReconciler
from tests.operator.cluster_builders import listed, listed_nodes
from tests.operator.observers.test_placement import KEY, state
from tests.plan.placement.gangs import demand

DONE = PassResult(Outcome(()), PassErrors(), changed=False, remaining=frozenset())


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"grove_placement_{name}", labels) or 0.0


async def test_round_is_timed_and_its_decisions_are_counted() -> None:
    placement, enqueued = state(listed_nodes(), listed()), []
    reconciler = PlacementReconciler(placement, enqueued.append)
    placement.update(KEY, [replace(demand("a", 2), levels=("zone",))])
    rounds, waiting = sample("round_seconds_count"), sample("decisions_total", decision="waiting")
    changes = await reconciler.observe(PlacementKey())
    assert changes is not None
    plan = reconciler.plan(changes, 1000.0)
    reconciler.record(PlacementKey(), changes, plan, DONE)
    assert sample("round_seconds_count") == rounds + 1
    assert sample("decisions_total", decision="waiting") == waiting + 1
    assert enqueued == [KEY]


async def test_failed_decision_is_counted_and_logged_once() -> None:
    placement = state(listed_nodes(), listed())
    reconciler = PlacementReconciler(placement, lambda _: None)
    placement.update(KEY, [replace(demand("a", 2), levels=("zone",))])
    changes = await reconciler.observe(PlacementKey())
    assert changes is not None
    plan = reconciler.plan(changes, 1000.0)
    gang = changes.gangs[0].state.demand.gang
    failed = replace(plan, report=replace(plan.report, unexpected={gang: RecursionError("too deep")}))
    name, labels = "grove_kube_work_unexpected_errors_total", {"queue": "operator"}
    before = REGISTRY.get_sample_value(name, labels) or 0.0
    with capture_logs() as logs:
        for _ in range(2):
            reconciler.record(PlacementKey(), changes, failed, DONE)
    assert REGISTRY.get_sample_value(name, labels) == before + 2
    (line,) = logs
    assert (line["key"], line["reason"]) == ("/".join(gang), "too deep")
    assert isinstance(line["exc_info"], RecursionError)
