"""Rolling updates of a set: one replica after another, in it one pod or one group replica at a time."""

from __future__ import annotations

import pytest

from grove.plan import pods as state
from grove.plan.hashes import generation_hash
from grove.plan.moments import rfc3339
from tests.plan import hands
from tests.plan.builders import a_set, read_set
from tests.plan.invariants import alive, check_history, check_settled, clique_of, outline
from tests.plan.updating import (
    breached,
    change,
    deployed,
    names,
    outdated,
    progress,
    quiet,
    status,
    tend,
    turn,
)
from tests.plan.world import Run, World


def test_one_pod_at_a_time_the_oldest_first_and_the_next_when_its_successor_answers():
    world = deployed("a:3/2")
    before = sorted(names(world))
    change(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 2}
    (gone,) = set(before) - names(world)
    assert progress(world, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"] == {"current": gone}
    assert breached(world, "PodClique", "wl-0-a") == "Unknown"

    hands.run_all(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 2}, "the one that went is still on its way out"
    hands.finish_terminating(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 1}
    selected = progress(world, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]
    assert selected["completed"] == [gone]

    quiet(world)
    assert not outdated(world)
    assert not names(world) & set(before)
    check_settled(world)
    check_history(world)


def test_what_is_told_when_all_is_done():
    world = deployed("a:2/1 b:1", "x:2/1=b")
    before = generation_hash(read_set(world.api.get("PodCliqueSet", "wl")))
    assert "updateProgress" not in status(world)
    assert status(world)["currentGenerationHash"] == before
    world.now += 100
    change(world)
    quiet(world)
    after = generation_hash(read_set(world.api.get("PodCliqueSet", "wl")))
    told = progress(world)
    assert after != before
    assert status(world)["currentGenerationHash"] == after
    assert told["updateStartedAt"] == told["updateEndedAt"] == rfc3339(world.now)
    assert "currentlyUpdating" not in told
    assert (told["updatedPodCliquesCount"], told["totalPodCliquesCount"]) == (1, 1)
    assert (told["updatedPodCliqueScalingGroupsCount"], told["totalPodCliqueScalingGroupsCount"]) == (1, 1)
    assert (status(world)["updatedReplicas"], status(world)["availableReplicas"]) == (1, 1)
    for kind, name in (("PodClique", "wl-0-a"), ("PodCliqueScalingGroup", "wl-0-x")):
        part = status(world, kind, name)
        assert part["currentPodCliqueSetGenerationHash"] == after
        assert part["updateProgress"]["podCliqueSetGenerationHash"] == after
        assert part["updateProgress"]["updateEndedAt"]
        assert not {key for key in part["updateProgress"] if key.startswith("ready")}
        assert breached(world, kind, name) == "False"
    of_group = progress(world, "PodCliqueScalingGroup", "wl-0-x")
    assert (of_group["updatedPodCliquesCount"], of_group["totalPodCliquesCount"]) == (2, 2)


def test_one_replica_of_the_set_after_the_other():
    world = deployed("a:2/1", replicas=3)
    change(world)
    turns = []
    for _ in range(60):
        world.tend()
        if turn(world) and turn(world) != turns[-1:]:
            turns += turn(world)
        disturbed = [
            index
            for index in range(3)
            if sum(clique_of(pod) == f"wl-{index}-a" and hands.answers(pod) for pod in alive(world)) < 2
        ]
        assert len(disturbed) <= 1
        hands.finish_terminating(world)
        hands.run_all(world)
    assert turns == [0, 1, 2]
    assert not outdated(world)
    assert progress(world)["updateEndedAt"]


def test_a_replica_of_a_group_goes_as_a_whole_and_one_at_a_time():
    world = deployed("a:1 b:1 c:2/1", "x:3/2=b,c")
    first = {pod.metadata.name for pod in alive(world) if clique_of(pod) in ("wl-0-x-0-b", "wl-0-x-0-c")}
    before = names(world)
    change(world, "b")
    tend(world)
    assert before - names(world) == first, "c has not changed, and goes with b"
    selected = progress(world, "PodCliqueScalingGroup", "wl-0-x")["readyReplicaIndicesSelectedToUpdate"]
    assert selected == {"current": 0}
    assert breached(world, "PodCliqueScalingGroup", "wl-0-x") == "Unknown"
    hands.finish_terminating(world)
    hands.run_all(world)
    tend(world)
    assert outdated(world) == {"wl-0-x-2-b": 1}
    selected = progress(world, "PodCliqueScalingGroup", "wl-0-x")["readyReplicaIndicesSelectedToUpdate"]
    assert selected == {"current": 1, "completed": [0]}
    quiet(world)
    assert {name for name in names(world) & before if "-x-" in name} == set()
    assert set(names(world) & before) == {n for n in before if n.startswith("wl-0-a")}
    check_settled(world)
    check_history(world)


def test_cliques_and_groups_of_the_replica_go_on_side_by_side():
    world = deployed("a:2/1 b:1 c:2/1", "x:2/1=b")
    change(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 1, "wl-0-c": 1, "wl-0-x-1-b": 1}


def test_what_does_not_answer_goes_at_once_and_repairs_what_is_broken():
    """Two of three do not answer: below the minimum, and the update is what will help."""
    world = deployed("a:3/3")
    sick = sorted(names(world))[:2]
    for name in sick:
        hands.ail(world, name)
    tend(world)
    change(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 1}
    assert not names(world) & set(sick)
    quiet(world)
    assert not outdated(world)


@pytest.mark.parametrize("fate", [hands.schedule, hands.ail, hands.crash, hands.lack_image])
def test_a_template_that_never_becomes_ready_costs_one_pod_and_the_next_template_repairs_it(fate):
    world = deployed("a:3/2", replicas=2)
    change(world)
    for _ in range(5):
        tend(world, 2)
        hands.finish_terminating(world)
        for name, pod in world.pods().items():
            if not state.ready(pod):
                hands.schedule(world, name)
                fate(world, name)
    assert outdated(world) == {"wl-0-a": 2, "wl-1-a": 3}
    change(world)
    tend(world)
    assert turn(world) == [0]
    assert outdated(world) == {"wl-0-a": 2, "wl-1-a": 3}
    quiet(world)
    assert not outdated(world)
    assert status(world)["updatedReplicas"] == 2
    check_settled(world)


def test_no_room_for_the_successor_stops_it_there():
    world = deployed("a:3/1")
    change(world)
    for _ in range(4):
        tend(world, 2)
        hands.finish_terminating(world)
        hands.refuse(world)
    assert outdated(world) == {"wl-0-a": 2}
    quiet(world)
    assert not outdated(world)


def test_a_pod_that_never_had_a_place_does_not_hold_up_the_others():
    """There is room for two of three."""
    world = deployed("a:2/1")
    world.scale("PodClique", "wl-0-a", 3)
    tend(world)
    hands.refuse(world)
    change(world)
    for _ in range(12):
        tend(world, 2)
        hands.finish_terminating(world)
        for name in [n for n, pod in sorted(world.pods("wl-0-a").items()) if not pod.spec.node_name]:
            if sum(bool(pod.spec.node_name) for pod in world.pods("wl-0-a").values()) < 2:
                hands.run(world, name)
        hands.refuse(world)
    assert not outdated(world)


def test_the_decision_is_written_before_the_deed_and_found_again_by_the_next_operator():
    world = deployed("a:2/1")
    change(world)
    while not any(intent.id.startswith("delete Pod ") for intent in world.plan().intents):
        world.tend()
    plan = world.plan()
    order = [" ".join(intent.id.split()[:2]) for intent in plan.intents]
    assert order == ["patch PodCliqueSet", "status PodClique", "patch PodGang", "delete Pod", "create Pod"]
    gang = next(intent for intent in plan.intents if intent.id == "patch PodGang ns/wl-0")
    assert {"patch PodCliqueSet ns/wl", "status PodClique ns/wl-0-a"} <= set(gang.after)
    run = Run(world, plan)
    run.go_on()
    run.go_on()
    chosen = progress(world, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]["current"]
    world.restart_operator()
    hands.run_all(world)
    tend(world)
    assert chosen not in names(world)
    assert outdated(world) == {"wl-0-a": 1}
    assert progress(world, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"] == {"current": chosen}
    quiet(world)
    assert not outdated(world)


def test_who_does_not_know_that_it_is_anothers_turn_is_stopped():
    world = deployed("a:2/1", replicas=2)
    change(world)
    while turn(world) != [0]:
        world.tend()
    quiet_version = len(world.api.past["PodCliqueSet"])
    stale = world.plan(0)
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    world.api.patch("PodCliqueSet", "wl", {"status": {"replicas": 7}}, status=True)
    before = names(world)
    assert not world.carry_out(stale)
    assert names(world) == before
    assert len(world.api.past["PodCliqueSet"]) == quiet_version + 1


def test_a_pod_that_has_come_up_since_is_not_taken_for_one_that_does_not_answer():
    world = deployed("a:2/2")
    change(world)
    while turn(world) != [0]:
        world.tend()
    ill = sorted(names(world))
    for name in ill:
        hands.ail(world, name)
    stale = world.plan(0)
    assert sum(intent.id.startswith("delete Pod ") for intent in stale.intents) == 2
    hands.run_all(world)
    assert not world.carry_out(stale)
    assert names(world) == set(ill)


def test_after_any_update_all_is_as_if_it_had_been_deployed_so():
    world, fresh = deployed("a:2/1 b:1 c:1", "x:2/1=b,c"), World(a_set("a:2/1 b:1 c:1", "x:2/1=b,c"))
    change(world)
    tend(world)
    change(world, "a")
    quiet(world)
    spec = world.api.get("PodCliqueSet", "wl")["spec"]
    fresh.api.patch("PodCliqueSet", "wl", {"spec": spec})
    quiet(fresh)
    assert outline(world) == outline(fresh)
    for name in world.api.all("PodClique"):
        mine, theirs = world.api.get("PodClique", name), fresh.api.get("PodClique", name)
        assert mine["spec"] == theirs["spec"]
        assert mine["metadata"]["labels"] == theirs["metadata"]["labels"]


def test_a_replica_that_never_had_a_place_is_new_at_once_and_holds_up_nobody():
    """There is room for one of two."""
    world = World(a_set("a:2/2", replicas=2))
    for _ in range(4):
        tend(world, 2)
        hands.run(world, *world.pods("wl-0-a"))
        hands.refuse(world)
    change(world)
    for _ in range(8):
        tend(world, 2)
        hands.finish_terminating(world)
        hands.run(world, *[name for name, pod in world.pods("wl-0-a").items() if pod.spec.node_name == ""])
        hands.refuse(world)
    assert not outdated(world)
    assert progress(world)["updateEndedAt"]
    assert (status(world)["updatedReplicas"], status(world)["availableReplicas"]) == (1, 1)


def test_a_template_that_changes_while_the_first_pods_are_made_reaches_them_too():
    world = World(a_set("a:2/1 b:1", "x:2/1=b"))
    world.step()
    change(world)
    quiet(world)
    assert not outdated(world)
    assert progress(world)["updateEndedAt"]
