"""Rolling updates of a set: one replica after another, in it one pod or one group replica at a time."""

from __future__ import annotations

import pytest

from grove.plan.desired.template_hash import generation_hash
from grove.plan.members import pod_state
from grove.plan.timestamps import rfc3339
from tests.plan.builders import a_set, read_set
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import alive, check_history, check_settled, clique_of, outline
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.simulator.updates import (
    breached,
    change,
    converge,
    deployed,
    names,
    outdated,
    progress,
    run_operator,
    status,
    updating_replicas,
)


def test_rollout_replaces_one_pod_at_a_time_oldest_first():
    sim = deployed("a:3/2")
    before = sorted(names(sim))
    change(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 2}
    (gone,) = set(before) - names(sim)
    assert progress(sim, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"] == {"current": gone}
    assert breached(sim, "PodClique", "wl-0-a") == "Unknown"

    actors.run_all(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 2}, "the replaced pod is still terminating"
    actors.finish_terminating(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 1}
    selected = progress(sim, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]
    assert selected["completed"] == [gone]

    converge(sim)
    assert not outdated(sim)
    assert not names(sim) & set(before)
    check_settled(sim)
    check_history(sim)


def test_statuses_of_what_is_updated_are_not_urgent():
    sim = deployed("a:2/1 b:1", "x:2/1=b", replicas=2)
    assert not any(each.updating for each in sim.plan().status_updates)
    change(sim)
    run_operator(sim)
    marked = {each.target.name for each in sim.plan().status_updates if each.updating}
    assert marked == {"wl-0-a", "wl-0-x", "wl-0-x-0-b", "wl-0-x-1-b"}, "no gangs"
    assert not any(each.updating for each in sim.plan(1).status_updates), "another replica"
    converge(sim)
    assert not any(each.updating for index in range(2) for each in sim.plan(index).status_updates)


def test_completed_rollout_status():
    sim = deployed("a:2/1 b:1", "x:2/1=b")
    before = generation_hash(read_set(sim.api.get("PodCliqueSet", "wl")))
    assert "updateProgress" not in status(sim)
    assert status(sim)["currentGenerationHash"] == before
    sim.now += 100
    change(sim)
    converge(sim)
    after = generation_hash(read_set(sim.api.get("PodCliqueSet", "wl")))
    reported = progress(sim)
    assert after != before
    assert status(sim)["currentGenerationHash"] == after
    assert reported["updateStartedAt"] == reported["updateEndedAt"] == rfc3339(sim.now)
    assert "currentlyUpdating" not in reported
    assert (reported["updatedPodCliquesCount"], reported["totalPodCliquesCount"]) == (1, 1)
    assert (reported["updatedPodCliqueScalingGroupsCount"], reported["totalPodCliqueScalingGroupsCount"]) == (
        1,
        1,
    )
    assert (status(sim)["updatedReplicas"], status(sim)["availableReplicas"]) == (1, 1)
    for kind, name in (("PodClique", "wl-0-a"), ("PodCliqueScalingGroup", "wl-0-x")):
        part = status(sim, kind, name)
        assert part["currentPodCliqueSetGenerationHash"] == after
        assert part["updateProgress"]["podCliqueSetGenerationHash"] == after
        assert part["updateProgress"]["updateEndedAt"]
        assert not {key for key in part["updateProgress"] if key.startswith("ready")}
        assert breached(sim, kind, name) == "False"
    of_group = progress(sim, "PodCliqueScalingGroup", "wl-0-x")
    assert (of_group["updatedPodCliquesCount"], of_group["totalPodCliquesCount"]) == (2, 2)


def test_rollout_updates_one_set_replica_at_a_time():
    sim = deployed("a:2/1", replicas=3)
    change(sim)
    order = []
    for _ in range(60):
        sim.reconcile_all()
        if updating_replicas(sim) and updating_replicas(sim) != order[-1:]:
            order += updating_replicas(sim)
        disturbed = [
            index
            for index in range(3)
            if sum(clique_of(pod) == f"wl-{index}-a" and actors.is_ready(pod) for pod in alive(sim)) < 2
        ]
        assert len(disturbed) <= 1
        actors.finish_terminating(sim)
        actors.run_all(sim)
    assert order == [0, 1, 2]
    assert not outdated(sim)
    assert progress(sim)["updateEndedAt"]


def test_rollout_replaces_group_replicas_whole_one_at_a_time():
    sim = deployed("a:1 b:1 c:2/1", "x:3/2=b,c")
    first = {pod.metadata.name for pod in alive(sim) if clique_of(pod) in ("wl-0-x-0-b", "wl-0-x-0-c")}
    before = names(sim)
    change(sim, "b")
    run_operator(sim)
    assert before - names(sim) == first, "c has not changed, and is replaced with b"
    selected = progress(sim, "PodCliqueScalingGroup", "wl-0-x")["readyReplicaIndicesSelectedToUpdate"]
    assert selected == {"current": 0}
    assert breached(sim, "PodCliqueScalingGroup", "wl-0-x") == "Unknown"
    actors.finish_terminating(sim)
    actors.run_all(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-x-2-b": 1}
    selected = progress(sim, "PodCliqueScalingGroup", "wl-0-x")["readyReplicaIndicesSelectedToUpdate"]
    assert selected == {"current": 1, "completed": [0]}
    converge(sim)
    assert {name for name in names(sim) & before if "-x-" in name} == set()
    assert set(names(sim) & before) == {n for n in before if n.startswith("wl-0-a")}
    check_settled(sim)
    check_history(sim)


def test_cliques_and_groups_of_replica_roll_in_parallel():
    sim = deployed("a:2/1 b:1 c:2/1", "x:2/1=b")
    change(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 1, "wl-0-c": 1, "wl-0-x-1-b": 1}


def test_unready_pods_are_replaced_at_once():
    """Two of three are not ready: below the minimum, and the update repairs it."""
    sim = deployed("a:3/3")
    sick = sorted(names(sim))[:2]
    for name in sick:
        actors.make_unready(sim, name)
    run_operator(sim)
    change(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 1}
    assert not names(sim) & set(sick)
    converge(sim)
    assert not outdated(sim)


@pytest.mark.parametrize("fault", [actors.schedule, actors.make_unready, actors.crash, actors.lack_image])
def test_broken_template_costs_one_pod_and_next_repairs_it(fault):
    sim = deployed("a:3/2", replicas=2)
    change(sim)
    for _ in range(5):
        run_operator(sim, 2)
        actors.finish_terminating(sim)
        for name, pod in sim.pods().items():
            if not pod_state.ready(pod):
                actors.schedule(sim, name)
                fault(sim, name)
    assert outdated(sim) == {"wl-0-a": 2, "wl-1-a": 3}
    change(sim)
    run_operator(sim)
    assert updating_replicas(sim) == [0]
    assert outdated(sim) == {"wl-0-a": 2, "wl-1-a": 3}
    converge(sim)
    assert not outdated(sim)
    assert status(sim)["updatedReplicas"] == 2
    check_settled(sim)


def test_unschedulable_successor_stops_rollout():
    sim = deployed("a:3/1")
    change(sim)
    for _ in range(4):
        run_operator(sim, 2)
        actors.finish_terminating(sim)
        actors.refuse(sim)
    assert outdated(sim) == {"wl-0-a": 2}
    converge(sim)
    assert not outdated(sim)


def test_never_scheduled_pod_does_not_stop_rollout():
    """There is room for two of three."""
    sim = deployed("a:2/1")
    sim.scale("PodClique", "wl-0-a", 3)
    run_operator(sim)
    actors.refuse(sim)
    change(sim)
    for _ in range(12):
        run_operator(sim, 2)
        actors.finish_terminating(sim)
        for name in [n for n, pod in sorted(sim.pods("wl-0-a").items()) if not pod.spec.node_name]:
            if sum(bool(pod.spec.node_name) for pod in sim.pods("wl-0-a").values()) < 2:
                actors.run(sim, name)
        actors.refuse(sim)
    assert not outdated(sim)


def test_decision_is_written_first_and_resumed_after_crash():
    sim = deployed("a:2/1")
    change(sim)
    while not any(intent.id.startswith("delete Pod ") for intent in sim.plan().intents):
        sim.reconcile_all()
    plan = sim.plan()
    order = [" ".join(intent.id.split()[:2]) for intent in plan.intents]
    assert order == ["patch PodCliqueSet", "status PodClique", "patch PodGang", "delete Pod", "create Pod"]
    gang = next(intent for intent in plan.intents if intent.id == "patch PodGang ns/wl-0")
    assert {"patch PodCliqueSet ns/wl", "status PodClique ns/wl-0-a"} <= set(gang.after)
    run = Run(sim, plan)
    run.go_on()
    run.go_on()
    chosen = progress(sim, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]["current"]
    sim.restart_operator()
    actors.run_all(sim)
    run_operator(sim)
    assert chosen not in names(sim)
    assert outdated(sim) == {"wl-0-a": 1}
    assert progress(sim, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"] == {"current": chosen}
    converge(sim)
    assert not outdated(sim)


def test_stale_replica_order_is_refused():
    sim = deployed("a:2/1", replicas=2)
    change(sim)
    while updating_replicas(sim) != [0]:
        sim.reconcile_all()
    quiet_version = len(sim.api.past["PodCliqueSet"])
    stale = sim.plan(0)
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    sim.api.patch("PodCliqueSet", "wl", {"status": {"replicas": 7}}, status=True)
    before = names(sim)
    assert not sim.execute(stale)
    assert names(sim) == before
    assert len(sim.api.past["PodCliqueSet"]) == quiet_version + 1


def test_pod_ready_since_snapshot_is_not_replaced_as_unready():
    sim = deployed("a:2/2")
    change(sim)
    while updating_replicas(sim) != [0]:
        sim.reconcile_all()
    ill = sorted(names(sim))
    for name in ill:
        actors.make_unready(sim, name)
    stale = sim.plan(0)
    assert sum(intent.id.startswith("delete Pod ") for intent in stale.intents) == 2
    actors.run_all(sim)
    assert not sim.execute(stale)
    assert names(sim) == set(ill)


def test_rollout_result_equals_new_deployment():
    sim, fresh = deployed("a:2/1 b:1 c:1", "x:2/1=b,c"), Simulator(a_set("a:2/1 b:1 c:1", "x:2/1=b,c"))
    change(sim)
    run_operator(sim)
    change(sim, "a")
    converge(sim)
    spec = sim.api.get("PodCliqueSet", "wl")["spec"]
    fresh.api.patch("PodCliqueSet", "wl", {"spec": spec})
    converge(fresh)
    assert outline(sim) == outline(fresh)
    for name in sim.api.all("PodClique"):
        mine, theirs = sim.api.get("PodClique", name), fresh.api.get("PodClique", name)
        assert mine["spec"] == theirs["spec"]
        assert mine["metadata"]["labels"] == theirs["metadata"]["labels"]


def test_never_scheduled_replica_updates_at_once():
    """There is room for one of two."""
    sim = Simulator(a_set("a:2/2", replicas=2))
    for _ in range(4):
        run_operator(sim, 2)
        actors.run(sim, *sim.pods("wl-0-a"))
        actors.refuse(sim)
    change(sim)
    for _ in range(8):
        run_operator(sim, 2)
        actors.finish_terminating(sim)
        actors.run(sim, *[name for name, pod in sim.pods("wl-0-a").items() if pod.spec.node_name == ""])
        actors.refuse(sim)
    assert not outdated(sim)
    assert progress(sim)["updateEndedAt"]
    assert (status(sim)["updatedReplicas"], status(sim)["availableReplicas"]) == (1, 1)


def test_template_change_during_creation_reaches_first_pods():
    sim = Simulator(a_set("a:2/1 b:1", "x:2/1=b"))
    sim.step()
    change(sim)
    converge(sim)
    assert not outdated(sim)
    assert progress(sim)["updateEndedAt"]
