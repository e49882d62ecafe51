"""Who sets the pace of an update: strategies, pauses, budgets, deadlines, and scaling in the middle of it."""

from __future__ import annotations

import pytest

from grove.api import labels
from grove.plan.moments import rfc3339
from tests.plan import hands
from tests.plan.api_server import Deed
from tests.plan.invariants import check_history, check_settled, clique_of, expand_now
from tests.plan.updating import (
    change,
    deployed,
    names,
    outdated,
    progress,
    quiet,
    status,
    tend,
)
from tests.plan.world import OPERATOR, World, read


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


def test_a_part_that_is_scaled_to_0_holds_up_no_update_and_comes_back_new():
    world = deployed("a:1 b:1 c:1", "x:1/1=c")
    world.scale("PodClique", "wl-0-b", 0)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    quiet(world)
    change(world, "b", "c")
    quiet(world)
    assert progress(world)["updateEndedAt"]
    assert status(world)["updatedReplicas"] == 1
    world.scale("PodClique", "wl-0-b", 1)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    quiet(world)
    assert len(names(world)) == 3
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
    hands.see_off(world, *range(world.api.get("PodCliqueSet", "wl")["spec"]["replicas"], 3))
    quiet(world)
    assert not outdated(world)
    assert progress(world)["updateEndedAt"]
    assert world.api.get(kind, name)["spec"]["replicas"] == count, "counts belong to whoever scales"
    check_settled(world)
    check_history(world)
    assert (count < 2) or not twice_replaced(world), "who is new stays"


def twice_replaced(world: World) -> list[str]:
    """Pods of the latest template that the operator took down again."""
    read_pods = [(deed, read("Pod", deed.before)) for deed in world.api.history if _takes_down(deed)]
    hashes = {clique.name: clique.template_hash for clique in expand_now(world).cliques}
    return [
        deed.key[1]
        for deed, pod in read_pods
        if pod.metadata.labels[labels.TEMPLATE_HASH] == hashes.get(clique_of(pod))
    ]


def _takes_down(deed: Deed) -> bool:
    return deed.by == OPERATOR and deed.verb == "delete" and deed.key[0] == "Pod"


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


def test_update_and_scaling_in_of_a_group_share_one_budget():
    world = deployed("b:1 c:2/1", "x:5/1=b,c")
    paced(world, maxUnavailable=2)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    change(world)
    tend(world)
    assert len([name for name in outdated(world) if name.endswith("-b")]) == 3, "one is on its way already"
    hands.finish_terminating(world)
    tend(world)
    assert len([name for name in outdated(world) if name.endswith("-b")]) == 2, "it is gone: another may go"
    quiet(world)
    assert not outdated(world)


def test_a_replica_that_does_not_go_holds_up_nobody_for_ever():
    world = deployed("b:1", "x:3/1=b")
    world.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    change(world)
    tend(world)
    assert sum(outdated(world).values()) == 2
    assert world.plan().wake_at == world.now + 30
    world.now += 30
    tend(world)
    assert sum(outdated(world).values()) == 1


def test_an_update_that_comes_no_further_says_so_until_it_does():
    world = deployed("a:2/1")
    paced(world, progressDeadline="1m")
    change(world)
    tend(world)
    hands.finish_terminating(world)
    tend(world)
    assert told(world) == ("True", "Progressing")
    assert world.plan().wake_at == world.now + 60
    world.now += 60
    tend(world)
    assert told(world) == told(world, "PodCliqueSet", "wl") == ("Unknown", "ProgressDeadlineExceeded")
    hands.run_all(world)
    tend(world)
    assert told(world) == told(world, "PodCliqueSet", "wl") == ("True", "Progressing")
    quiet(world)
    assert told(world) == told(world, "PodCliqueSet", "wl") == ("False", "NoActiveUpdate")


def told(world: World, kind: str = "PodClique", name: str = "wl-0-a") -> tuple[str, str]:
    facts = status(world, kind, name)["conditions"]
    return next((fact["status"], fact["reason"]) for fact in facts if fact["type"] == "UpdateInProgress")
