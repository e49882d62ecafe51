"""Restarts by annotations of the set: only the pods of the unit are replaced, as by an update."""

from __future__ import annotations

import pytest

from grove.api.naming import annotations as keys
from tests.plan.simulator import actors
from tests.plan.simulator.disruptions import check_disruptions
from tests.plan.simulator.invariants import alive, check_history, check_settled, clique_of
from tests.plan.simulator.simulator import Simulator
from tests.plan.simulator.updates import (
    change,
    converge,
    deployed,
    names,
    progress,
    run_operator,
    status,
    updating_replicas,
)


def restart(sim: Simulator, unit: str, value: str | None = "1") -> None:
    annotations = {f"{keys.RESTART_PREFIX}{unit}": value}
    sim.api.patch("PodCliqueSet", "wl", {"metadata": {"annotations": annotations}})


def pods_by_clique(sim: Simulator) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in alive(sim):
        found.setdefault(clique_of(pod), set()).add(pod.metadata.name)
    return found


def replaced(before: dict[str, set[str]], after: dict[str, set[str]]) -> set[str]:
    """The cliques of which all pods were replaced; the others must have kept theirs."""
    changed = {name for name in before if not before[name] & after[name]}
    assert {name for name in before if before[name] != after[name]} == changed
    return changed


R0 = {"wl-0-a", "wl-0-x-0-b", "wl-0-x-0-c", "wl-0-x-1-b", "wl-0-x-1-c"}
R1 = {name.replace("wl-0", "wl-1") for name in R0}
X1 = {"wl-0-x-1-b", "wl-0-x-1-c"}


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("all", R0 | R1),
        ("0", R0),
        ("1", R1),
        ("0.a", {"wl-0-a"}),
        ("all.a", {"wl-0-a", "wl-1-a"}),
        ("0.x", R0 - {"wl-0-a"}),
        ("0.x.1", X1),
        ("all.x.1", X1 | {"wl-1-x-1-b", "wl-1-x-1-c"}),
        ("0.c", R0 - {"wl-0-a"}),  # the replicas of a group are replaced as a whole
        ("2", set()),
        ("0.z", set()),
        ("0.a.0", set()),
    ],
)
def test_restart_replaces_the_pods_of_its_unit_only(unit, expected):
    sim = deployed("a:2/1 b:1 c:2/1", "x:2/1=b,c", replicas=2)
    before = pods_by_clique(sim)
    restart(sim, unit)
    converge(sim)
    assert replaced(before, pods_by_clique(sim)) == expected
    assert progress(sim)["updateEndedAt"]
    assert (status(sim)["updatedReplicas"], status(sim)["availableReplicas"]) == (2, 2)
    assert bool(check_disruptions(sim)) is bool(expected)
    check_settled(sim)
    check_history(sim)


@pytest.mark.parametrize("unit", ["", "-1", "0.x.01", "ALL", "0.x.1.b"])
def test_annotation_that_is_no_unit_starts_no_update(unit):
    sim = deployed("a:2/1 b:1", "x:2/1=b")
    before = names(sim)
    restart(sim, unit)
    converge(sim)
    assert names(sim) == before
    assert progress(sim) == {}


def test_restart_of_set_replaces_one_pod_at_a_time():
    sim = deployed("a:2/2", replicas=2)
    before = names(sim)
    restart(sim, "all")
    run_operator(sim)
    assert len(before - names(sim)) == 1
    assert updating_replicas(sim) == [0]
    run_operator(sim)
    assert len(before - names(sim)) == 1, "the next one follows when the successor is ready"
    assert status(sim)["updatedReplicas"] == 0
    converge(sim)
    assert not before & names(sim)


def test_counts_of_restart_wait_for_the_last_successor():
    """Deleted pods do not make a clique outdated that was updated; before the end of a restart it was not."""
    sim = deployed("a:2/1")
    before = names(sim)
    restart(sim, "all")
    for _ in range(40):
        sim.reconcile_all()
        if not before & names(sim):
            break
        actors.finish_terminating(sim)
        actors.run_all(sim)
    assert not before & names(sim)
    assert status(sim)["updatedReplicas"] == 0
    assert "updateEndedAt" not in progress(sim)


def test_same_request_and_its_removal_replace_nothing():
    sim = deployed("a:2/1", "")
    restart(sim, "0")
    converge(sim)
    before = names(sim)
    restart(sim, "0")
    converge(sim)
    restart(sim, "0", None)
    converge(sim)
    assert names(sim) == before
    assert progress(sim)["updateEndedAt"]
    restart(sim, "0", "2")
    converge(sim)
    assert not names(sim) & before


def test_later_pods_need_no_restart():
    sim = deployed("a:1 b:1", "x:1/1=b")
    restart(sim, "all")
    converge(sim)
    before = names(sim)
    sim.scale("PodClique", "wl-0-a", 3)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    sim.scale("PodCliqueSet", "wl", 2)
    converge(sim)
    assert before < names(sim)
    assert status(sim)["updatedReplicas"] == 2


def test_restart_during_update_disrupts_no_second_replica():
    sim = deployed("a:2/2", replicas=2)
    change(sim)
    run_operator(sim)
    assert updating_replicas(sim) == [0]
    restart(sim, "1")
    run_operator(sim)
    assert updating_replicas(sim) == [0]
    converge(sim)
    check_disruptions(sim)


@pytest.mark.parametrize("strategy", [{"type": "OnDelete"}, {"paused": True}], ids=str)
def test_restart_waits_while_updates_are_held(strategy):
    sim = deployed("a:2/1")
    before = names(sim)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": strategy}})
    restart(sim, "all")
    converge(sim)
    assert names(sim) == before
    assert status(sim)["updatedReplicas"] == 0


def test_lost_pod_gets_the_token_of_a_restart_that_waits():
    sim = deployed("a:2/1")
    before = names(sim)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": True}}})
    restart(sim, "all")
    lost = min(before)
    actors.delete(sim, lost)
    converge(sim)
    (successor,) = names(sim) - before
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": False}}})
    converge(sim)
    assert successor in names(sim)
    assert not before & names(sim)
