"""The PriorityClass of a set: pods have it with every scheduler, unless they name one or it is missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.configuration.default_scheduler import DefaultSchedulerConfig
from grove.plan.placement.assignment import Placements
from grove.plan.podcliqueset import plan_set
from grove.plan.replica import plan_replica
from grove.plan.snapshot import PriorityLookup, SetSnapshot
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from grove.schedulers.lpx import Lpx
from grove.schedulers.volcano import Volcano
from tests.plan.builders import a_clique, read_set
from tests.plan.simulator.actors import finish_terminating, force_delete, run_all
from tests.plan.simulator.simulator import Simulator
from tests.schedulers.builders import a_body

BACKENDS = [None, Kube(), Kube(V1Alpha2()), Kube(V1Beta1()), Kai(), Volcano(), Lpx()]
MISSING = PriorityLookup(missing=True)


def settled(scheduler: SchedulerBackend | None, priority: PriorityLookup, own: str = "") -> Simulator:
    body = a_body("a b", priorityClassName="high")
    if own:
        body["spec"]["template"]["cliques"][1] = a_clique("b", priorityClassName=own)
    sim = Simulator(body)
    sim.scheduler, sim.priority = scheduler, priority
    sim.settle()
    return sim


def classes(sim: Simulator) -> dict[str, str]:
    """By clique, the class of its pod."""
    return {
        pod["metadata"]["labels"]["grove.io/podclique"]: pod["spec"].get("priorityClassName", "")
        for pod in sim.api.objects("Pod")
    }


@pytest.mark.parametrize("scheduler", BACKENDS)
def test_pods_have_the_class_of_their_set(scheduler: SchedulerBackend | None) -> None:
    sim = settled(scheduler, PriorityLookup())
    assert classes(sim) == {"wl-0-a": "high", "wl-0-b": "high"}
    assert sim.api.get("PodGang", "wl-0")["spec"]["priorityClassName"] == "high"
    assert "priorityClassName" not in sim.api.get("PodClique", "wl-0-a")["spec"]["podSpec"]


def test_class_of_a_clique_is_kept() -> None:
    assert classes(settled(None, PriorityLookup(), own="low")) == {"wl-0-a": "high", "wl-0-b": "low"}


@pytest.mark.parametrize("scheduler", BACKENDS)
def test_missing_class_is_left_out(scheduler: SchedulerBackend | None) -> None:
    sim = settled(scheduler, MISSING)
    assert classes(sim) == {"wl-0-a": "", "wl-0-b": ""}
    assert "priorityClassName" not in sim.api.get("PodGang", "wl-0")["spec"]
    for group in sim.api.objects("PodGroup"):
        assert "priorityClassName" not in group["spec"]


def test_class_that_appears_is_for_new_pods() -> None:
    sim = settled(None, MISSING)
    before = sim.pods()
    sim.priority = PriorityLookup()
    sim.settle()
    assert sim.pods().keys() == before.keys()
    assert sim.api.get("PodGang", "wl-0")["spec"]["priorityClassName"] == "high"
    force_delete(sim, next(iter(before)))
    sim.settle()
    assert sorted(classes(sim).values()) == ["", "high"]


def test_changed_class_replaces_all_pods() -> None:
    sim = settled(None, PriorityLookup())
    before = sim.pods()
    changed = {"spec": {"template": {"priorityClassName": "higher"}}}
    sim.api.patch("PodCliqueSet", "wl", changed, by="user")
    for _ in range(10):
        sim.reconcile_all()
        finish_terminating(sim)
        run_all(sim)
    assert not before.keys() & sim.pods().keys()
    assert classes(sim) == {"wl-0-a": "higher", "wl-0-b": "higher"}


@pytest.mark.parametrize(
    ("own", "priority", "expected"),
    [
        ("", PriorityLookup(), ("high",)),
        ("low", PriorityLookup(), ("high", "low")),
        ("low", MISSING, ("", "low")),
    ],
    ids=["of the set", "of a clique", "missing"],
)
def test_placement_knows_the_classes_of_pods(
    own: str, priority: PriorityLookup, expected: tuple[str, ...]
) -> None:
    body = a_body("a b", priorityClassName="high")
    body["spec"]["template"]["cliques"][1] = a_clique("b", priorityClassName=own)
    sim = Simulator(body)
    sim.scheduler, sim.priority = Kube(placement=DefaultSchedulerConfig().placement_settings), priority
    plan = plan_replica(replace(sim.snapshot(), placements=Placements()), sim.now)
    (demand,) = plan.placement_demands
    assert demand.priority_classes == expected


def test_missing_class_is_an_error_of_the_set() -> None:
    workload = read_set(a_body("a", priorityClassName="high", replicas=0))
    found = plan_set(SetSnapshot(workload, priority=MISSING), 0.0).status_updates[0].desired
    (error,) = found.last_errors
    assert error.code == "ERR_GET_PRIORITYCLASS"
    assert (
        "PriorityClass high does not exist, and pods are created without it: create it" in error.description
    )
    assert found.observed_generation == workload.metadata.generation
    fine = plan_set(SetSnapshot(workload, priority=PriorityLookup(due=7.0)), 0.0)
    assert (fine.status_updates[0].desired.last_errors, fine.requeue_at) == ((), 7.0)
