"""Rolling updates of a set: one replica after another, in it one pod or one group replica at a time."""

from __future__ import annotations

from collections import Counter

import pytest

from grove.api import labels
from grove.plan.hashes import generation_hash, template_hash
from grove.plan.moments import rfc3339
from tests.plan import hands
from tests.plan.builders import a_set, read_set
from tests.plan.invariants import alive, check_history, check_settled, clique_of, outline
from tests.plan.world import Run, World

IMAGES = iter(range(2, 100_000))


def deployed(cliques: str, groups: str = "", **kwargs) -> World:
    """A set whose pods all run, and that says so."""
    world = World(a_set(cliques, groups, **kwargs))
    quiet(world)
    return world


def quiet(world: World, passes: int = 100) -> None:
    """Until nothing is left to do, with nodes that do what they are told."""
    for _ in range(passes):
        written = world.tend()
        hands.finish_terminating(world)
        hands.run_all(world)
        if not written and not world.tend():
            return
    raise AssertionError("still not at rest")


def change(world: World, *names: str) -> None:
    """A new image for these cliques, or for all."""
    spec = world.api.get("PodCliqueSet", "wl")["spec"]
    for clique in spec["template"]["cliques"]:
        if not names or clique["name"] in names:
            clique["spec"]["podSpec"]["containers"][0]["image"] = f"example.com/serve:{next(IMAGES)}"
    world.api.patch("PodCliqueSet", "wl", {"spec": spec})


def tend(world: World, passes: int = 6) -> None:
    """The operator does what it can while nodes do nothing."""
    for _ in range(passes):
        world.tend()


def outdated(world: World) -> Counter[str]:
    """Pods of an old template, by clique."""
    workload = read_set(world.api.get("PodCliqueSet", "wl"))
    wanted = {clique.name: template_hash(clique, "") for clique in workload.spec.template.cliques}
    return Counter(
        clique_of(pod)
        for pod in alive(world)
        if pod.metadata.labels[labels.TEMPLATE_HASH] != wanted[pod.metadata.labels[labels.CLIQUE_TEMPLATE]]
    )


def status(world: World, kind: str = "PodCliqueSet", name: str = "wl"):
    return world.api.get(kind, name).get("status", {})


def progress(world: World, kind: str = "PodCliqueSet", name: str = "wl"):
    return status(world, kind, name).get("updateProgress", {})


def turn(world: World) -> list[int]:
    return [entry["replicaIndex"] for entry in progress(world).get("currentlyUpdating", ())]


def names(world: World) -> set[str]:
    return {pod.metadata.name for pod in alive(world)}


def breached(world: World, kind: str, name: str) -> str:
    facts = status(world, kind, name)["conditions"]
    return next(fact["status"] for fact in facts if fact["type"] == "MinAvailableBreached")


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


def test_a_template_that_never_becomes_ready_costs_one_pod_and_the_next_template_repairs_it():
    world = deployed("a:3/2", replicas=2)
    change(world)
    for _ in range(5):
        tend(world, 2)
        hands.finish_terminating(world)
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
    assert order == ["patch PodCliqueSet", "status PodClique", "patch PodGang", "create Pod", "delete Pod"]
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


def test_on_delete_nothing_goes_and_what_is_deleted_comes_back_new():
    world = deployed("a:2/1 b:1 c:2/1", "x:2/1=b,c")
    world.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    quiet(world)
    before = names(world)
    world.now += 50
    change(world)
    quiet(world)
    assert names(world) == before
    told = progress(world)
    assert told["updateStartedAt"] == told["updateEndedAt"] == rfc3339(world.now)
    assert "currentlyUpdating" not in told
    assert told["updatedPodCliquesCount"] == 0
    for kind, name in (
        ("PodClique", "wl-0-a"),
        ("PodClique", "wl-0-x-1-c"),
        ("PodCliqueScalingGroup", "wl-0-x"),
    ):
        part = progress(world, kind, name)
        assert part["updateStartedAt"] == part["updateEndedAt"] == rfc3339(world.now)
    hands.delete(world, sorted(world.pods("wl-0-a"))[0])
    hands.delete(world, sorted(world.pods("wl-0-x-0-c"))[0])
    quiet(world)
    assert outdated(world) == {
        "wl-0-a": 1, "wl-0-x-0-b": 1, "wl-0-x-0-c": 1, "wl-0-x-1-b": 1, "wl-0-x-1-c": 2
    }  # fmt: skip
    assert status(world, "PodClique", "wl-0-a")["updatedReplicas"] == 1
    world.scale("PodClique", "wl-0-a", 1)
    quiet(world)
    assert outdated(world)["wl-0-a"] == 0, "the outdated one went"


def test_a_change_of_strategy_rolls_nothing_and_the_next_template_rolls_all():
    world = deployed("a:2/1")
    world.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    change(world)
    quiet(world)
    world.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate"}}})
    quiet(world)
    assert outdated(world) == {"wl-0-a": 2}
    change(world)
    quiet(world)
    assert not outdated(world)


def test_paused_it_stops_where_it_is_and_goes_on_from_there():
    world = deployed("a:3/1", replicas=2)
    change(world)
    tend(world)
    world.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": True}}})
    quiet(world)
    assert outdated(world) == {"wl-0-a": 2, "wl-1-a": 3}
    hands.delete(world, sorted(world.pods("wl-1-a"))[0])
    quiet(world)
    assert outdated(world) == {"wl-0-a": 2, "wl-1-a": 2}
    world.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": False}}})
    quiet(world)
    assert not outdated(world)


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [
        ("PodCliqueSet", "wl", 3),
        ("PodCliqueSet", "wl", 1),
        ("PodClique", "wl-0-a", 4),
        ("PodClique", "wl-0-a", 1),
        ("PodClique", "wl-0-a", 0),
        ("PodCliqueScalingGroup", "wl-0-x", 4),
        ("PodCliqueScalingGroup", "wl-0-x", 1),
        ("PodCliqueScalingGroup", "wl-0-x", 0),
    ],
)
@pytest.mark.parametrize("passes", [0, 1, 2, 3, 5, 8, 13])
def test_scaled_in_the_middle_it_comes_to_its_end_all_the_same(kind, name, count, passes):
    world = deployed("a:2/1 b:1 c:1", "x:2/1=b,c", replicas=2)
    change(world)
    for _ in range(passes):
        world.tend()
        hands.finish_terminating(world)
        hands.run_all(world)
    world.scale(kind, name, count)
    quiet(world)
    for index in range(world.api.get("PodCliqueSet", "wl")["spec"]["replicas"], 3):
        world.settle(index)
    quiet(world)
    assert not outdated(world)
    assert progress(world)["updateEndedAt"]
    assert world.api.get(kind, name)["spec"]["replicas"] == count, "counts belong to whoever scales"
    check_settled(world)
    check_history(world)


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


def paced(world: World, **pace: object) -> None:
    """How fast the cliques and groups of the set may be replaced."""
    template = world.api.get("PodCliqueSet", "wl")["spec"]["template"]
    grouped = {name for group in template.get("podCliqueScalingGroups", ()) for name in group["cliqueNames"]}
    for part in [*template["cliques"], *template.get("podCliqueScalingGroups", ())]:
        if part["name"] not in grouped:
            part["rollingUpdate"] = pace
    world.api.patch("PodCliqueSet", "wl", {"spec": {"template": template}})
    quiet(world)


def test_as_many_at_once_as_the_budget_says():
    world = deployed("a:5/2 b:1", "x:4/1=b")
    paced(world, maxUnavailable=3)
    before = names(world)
    change(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 2, "wl-0-x-3-b": 1}
    gone = before - names(world)
    selected = progress(world, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]
    assert {selected["current"], *selected["completed"]} == {name for name in gone if "-a-" in name}
    hands.finish_terminating(world)
    hands.run(world, *[name for name in names(world) if name not in before and "-a-" in name][:1])
    tend(world)
    assert outdated(world) == {"wl-0-a": 1, "wl-0-x-3-b": 1}, "one is back, one more may go"
    quiet(world)
    assert not outdated(world)
    check_settled(world)


def test_update_and_scaling_in_share_one_budget():
    world = deployed("a:5/1")
    paced(world, maxUnavailable=2)
    world.scale("PodClique", "wl-0-a", 4)
    tend(world)
    change(world)
    tend(world)
    assert outdated(world) == {"wl-0-a": 3}, "one is on its way out already"
    quiet(world)
    assert not outdated(world)


def test_an_update_that_comes_no_further_says_so_until_it_does():
    world = deployed("a:2/1")
    paced(world, progressDeadline="1m")
    change(world)
    tend(world)
    hands.finish_terminating(world)
    tend(world)
    assert reason(world) == "UpdateInProgress"
    assert world.plan().wake_at == world.now + 60
    world.now += 60
    tend(world)
    assert reason(world) == "ProgressDeadlineExceeded"
    hands.run_all(world)
    tend(world)
    assert reason(world) == "UpdateInProgress"
    quiet(world)
    assert reason(world) == ""


def reason(world: World) -> str:
    facts = status(world, "PodClique", "wl-0-a")["conditions"]
    return next((fact["reason"] for fact in facts if fact["type"] == "UpdateInProgress"), "")
