"""Larger pods of a gang are created and released first."""

from __future__ import annotations

from typing import Any

import pytest

from grove import timing
from grove.api.intents import Create, Patch
from grove.plan.desired.expand import expand
from grove.plan.gang.creation_order import by_size
from grove.plan.gang.placement import GangPlacement
from grove.plan.placement.assignment import Assignment
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from tests.plan.builders import Body, a_clique, a_set, read_set
from tests.plan.simulator.actors import schedule
from tests.plan.simulator.simulator import Simulator

GPU = "nvidia.com/gpu"


def sized(name: str, **requests: Any) -> Body:
    """A clique whose pods have these requests."""
    container = {"name": "main", "image": "model:1", "resources": {"requests": requests}}
    return a_clique(name, containers=[container])


def a_mixed_set(*cliques: Body, groups: str = "") -> Body:
    body = a_set("", groups)
    body["spec"]["template"]["cliques"] = list(cliques)
    return body


@pytest.mark.parametrize(
    ("cliques", "expected"),
    [
        ([sized("a", **{GPU: "1"}), sized("b", **{GPU: "8"})], [["b"], ["a"]]),
        ([sized("a", **{GPU: "8"}), sized("b", **{GPU: "8"})], [["a", "b"]]),
        ([sized("a", cpu="64"), sized("b", **{GPU: "1"})], [["b"], ["a"]]),
        ([sized("a", **{GPU: "1"}), sized("b", **{GPU: "1"}, cpu="2")], [["b"], ["a"]]),
        ([sized("a", cpu="64"), sized("b", memory="1Gi")], [["b"], ["a"]]),
        ([sized("a", memory="1Gi"), sized("b", **{"rdma/hca": "1"})], [["b"], ["a"]]),
        ([sized("a", **{"example.com/nic": "9"}), sized("b", **{"amd.com/gpu": "1"})], [["b"], ["a"]]),
        ([sized("a"), sized("b", cpu="1"), sized("c")], [["b"], ["a", "c"]]),
        ([sized("a", cpu="many"), sized("b", cpu="1")], [["b"], ["a"]]),
    ],
    ids=[
        "gpus",
        "equal",
        "gpus first",
        "then others",
        "memory first",
        "devices",
        "any gpu",
        "none",
        "invalid",
    ],
)
def test_cliques_are_ordered_by_size_of_their_pods(cliques: list[Body], expected: list[list[str]]) -> None:
    (gang,) = expand(read_set(a_mixed_set(*cliques)), 0, {}, {}).gangs
    assert [[clique.template.name for clique in same] for same in by_size(gang.cliques)] == expected


@pytest.mark.parametrize(
    "scheduler", [Kube(), Kube(V1Alpha2()), Kube(V1Beta1())], ids=["none", "1.36", "1.37"]
)
def test_smaller_pods_are_created_after_larger_ones(scheduler: SchedulerBackend) -> None:
    sim = Simulator(
        a_mixed_set(sized("worker", **{GPU: "1"}), sized("leader", **{GPU: "8"}), sized("router"))
    )
    sim.scheduler = scheduler
    creates = {_clique(each.body): each for each in _pod_creates(sim)}
    leader, worker, router = (creates[f"wl-0-{name}"] for name in ("leader", "worker", "router"))
    assert list(creates) == ["wl-0-leader", "wl-0-worker", "wl-0-router"]
    assert leader.id in worker.after
    assert worker.id in router.after
    assert not {worker.id, router.id} & set(leader.after)


def test_pod_beyond_the_minimum_delays_no_smaller_one() -> None:
    """A quota may refuse it for ever."""
    leader = sized("leader", **{GPU: "8"})
    leader["spec"] |= {"replicas": 3, "minAvailable": 1}
    creates = _pod_creates(Simulator(a_mixed_set(leader, sized("worker", **{GPU: "1"}))))
    first, *surplus = (each for each in creates if _clique(each.body) == "wl-0-leader")
    (worker,) = (each for each in creates if _clique(each.body) == "wl-0-worker")
    assert first.id in worker.after
    assert not {each.id for each in surplus} & set(worker.after)


def test_refused_pods_delay_no_smaller_ones() -> None:
    """A LimitRange may refuse them for ever."""
    sim = Simulator(a_mixed_set(sized("leader", **{GPU: "8"}), sized("worker", **{GPU: "1"})))
    sim.step()
    error = {"code": "ERR_CREATE_POD", "description": "refused", "observedAt": "2026-01-01T00:00:00Z"}
    for name in sim.api.all("Pod"):
        sim.api.delete("Pod", name)
    sim.api.patch("PodClique", "wl-0-leader", {"status": {"lastErrors": [error]}}, status=True)
    (worker,) = (each for each in _pod_creates(sim) if _clique(each.body) == "wl-0-worker")
    assert not [each for each in worker.after if each.startswith("create Pod ")]


def test_number_of_dependencies_is_limited() -> None:
    large, small = sized("leader", **{GPU: "8"}), sized("worker", **{GPU: "1"})
    for each in (large, small):
        each["spec"] |= {"replicas": 1000, "minAvailable": 1000}
    creates = _pod_creates(Simulator(a_mixed_set(large, small)))
    assert len(creates) == 2000
    assert sum(len(each.after) for each in creates) < 2000 * (timing.LARGER_PODS_WAITED_FOR + 10)


def test_smaller_pods_are_released_after_larger_ones() -> None:
    small, large = sized("worker", **{GPU: "1"}), sized("leader", **{GPU: "8"})
    sim = Simulator(a_mixed_set(small, large, groups="x:2/1=worker,leader"))
    sim.settle()
    for pod in sim.api.objects("Pod"):
        if pod["metadata"]["labels"]["grove.io/podgang"] == "wl-0":
            schedule(sim, pod["metadata"]["name"])
    pods = {pod["metadata"]["name"]: _clique(pod) for pod in sim.api.objects("Pod")}
    removals = [
        each
        for each in sim.plan().intents
        if isinstance(each, Patch) and each.target.kind == "Pod" and "schedulingGates" in each.body["spec"]
    ]
    leader, worker = removals
    assert [pods[each.target.name] for each in removals] == ["wl-0-x-1-leader", "wl-0-x-1-worker"]
    assert leader.id in worker.after


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (GangPlacement(), True),
        (GangPlacement(applies=True), False),
        (GangPlacement(applies=True, assignment=Assignment()), False),
        (GangPlacement(applies=True, assignment=Assignment(in_part=True)), True),
    ],
    ids=["not placed", "undecided", "assigned", "in part"],
)
def test_order_matters_where_the_scheduler_chooses_nodes(placement: GangPlacement, expected: bool) -> None:
    assert placement.scheduler_chooses is expected


def _pod_creates(sim: Simulator) -> list[Create]:
    """The creates of pods in the first plan."""
    return [each for each in sim.plan().intents if isinstance(each, Create) and each.target.kind == "Pod"]


def _clique(pod: Body) -> str:
    return str(pod["metadata"]["labels"]["grove.io/podclique"])
