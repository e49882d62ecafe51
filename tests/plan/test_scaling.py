"""Scaling out, in and to 0: of a clique, of a group, of the set."""

from __future__ import annotations

import pytest

from grove.api.intents import Delete
from grove.plan.model import Plan
from grove.plan.retire import PATIENCE, retire
from tests.plan import hands
from tests.plan.builders import a_set
from tests.plan.invariants import check_history, check_settled
from tests.plan.world import World


def running(cliques: str, groups: str = "", **kwargs) -> World:
    """A set whose pods all run."""
    world = World(a_set(cliques, groups, **kwargs))
    for _ in range(2):
        world.settle()
        hands.run_all(world)
    world.settle()
    return world


def sent(world: World, index: int = 0) -> list[str]:
    """The next plan in short, once it has been carried out."""
    plan = world.plan(index)
    assert world.carry_out(plan)
    return [" ".join(intent.id.split()[:2]) for intent in plan.intents]


def cliques(world: World) -> list[str]:
    return sorted(world.api.all("PodClique"))


def test_a_clique_scaled_out_names_the_new_pods_then_makes_them():
    world = running("a:2/1")
    before = set(world.pods())
    world.scale("PodClique", "wl-0-a", 4)
    assert sent(world) == ["patch PodGang", "create Pod", "create Pod"]
    assert before < set(world.pods())
    assert sorted(pod.spec.hostname for pod in world.pods().values()) == [f"wl-0-a-{n}" for n in range(4)]


def test_a_clique_scaled_in_is_asked_whether_it_is_so_before_a_pod_goes():
    world = running("a:3/1")
    world.scale("PodClique", "wl-0-a", 1)
    assert sent(world) == ["patch PodClique", "patch PodGang", "delete Pod", "delete Pod"]
    hands.finish_terminating(world)
    check_settled(world)
    check_history(world)


def test_a_clique_scaled_to_0_leaves_its_gang_and_comes_back():
    world = running("a:1 b:2/1")
    world.scale("PodClique", "wl-0-b", 0)
    world.settle()
    assert list(world.references("wl-0")) == ["wl-0-a"]
    assert world.plan().standing.available
    world.scale("PodClique", "wl-0-b", 1)
    world.settle()
    assert list(world.references("wl-0")) == ["wl-0-a", "wl-0-b"]
    check_settled(world)
    check_history(world)


def test_a_count_that_somebody_set_is_never_set_back():
    world = running("a:1", "x:2/1=a")
    world.scale("PodClique", "wl-0-x-0-a", 3)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    world.api.patch("PodClique", "wl-0-x-0-a", {"spec": {"roleName": "spoilt"}})
    world.settle()
    assert world.api.get("PodClique", "wl-0-x-0-a")["spec"]["replicas"] == 3
    assert world.api.get("PodCliqueScalingGroup", "wl-0-x")["spec"]["replicas"] == 4


def test_a_template_that_changes_its_counts_changes_no_replica_that_is_there():
    world = running("a:1")
    template = a_set("a:3/1")["spec"]["template"]
    world.api.patch("PodCliqueSet", "wl", {"spec": {"template": template}})
    world.settle()
    assert len(world.pods()) == 1


def test_a_group_scaled_out_gets_gangs_of_their_own_whose_numbers_start_at_0():
    world = running("a:1 b:1", "x:2/2=b")
    world.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    world.settle()
    assert sorted(world.api.all("PodGang")) == ["wl-0", "wl-0-x-0", "wl-0-x-1"]
    assert list(world.references("wl-0-x-1")) == ["wl-0-x-3-b"]


def test_a_group_scaled_in_loses_its_highest_replicas():
    world = running("a:1 b:1", "x:4/1=b")
    world.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    assert sorted(sent(world)) == sorted(
        ["patch PodCliqueScalingGroup", "patch PodCliqueSet"]
        + ["delete PodGang", "delete Pod", "delete PodClique"] * 2
    )
    assert cliques(world) == ["wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b"]
    assert sorted(world.api.all("PodGang")) == ["wl-0", "wl-0-x-0"]
    check_history(world)


def test_a_group_scaled_to_0_leaves_the_base_gang_and_comes_back():
    world = running("a:1 b:1", "x:3/2=b")
    world.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    world.settle()
    assert list(world.references("wl-0")) == ["wl-0-a"]
    assert cliques(world) == ["wl-0-a"]
    assert world.plan().standing.available
    hands.finish_terminating(world)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    world.settle()
    assert list(world.references("wl-0")) == ["wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b"]
    check_settled(world)
    check_history(world)


def test_a_replica_that_the_set_no_longer_has_goes_with_all_it_had():
    world = running("a:1 b:2/1", "x:2/1=b", replicas=2)
    world.settle(1)
    first = set(world.pods("wl-0-a"))
    world.scale("PodCliqueSet", "wl", 1)
    hands.see_off(world, 1)
    assert world.snapshot(1).cliques == world.snapshot(1).groups == world.snapshot(1).gangs == {}
    assert world.snapshot(1).pods == ()
    assert sorted(world.api.all("Service")) == ["wl-0"]
    assert first <= set(world.pods())
    check_history(world)


def kinds(plan: Plan) -> set[str]:
    """Of what a plan deletes."""
    return {intent.target.kind for intent in plan.intents if isinstance(intent, Delete)}


def test_what_holds_no_gpus_goes_when_the_pods_of_all_that_go_are_gone():
    world = running("a:1", replicas=3)
    for index in (1, 2):
        world.settle(index)
    hands.run_all(world)
    world.scale("PodCliqueSet", "wl", 1)

    def together() -> Plan:
        return retire([world.snapshot(1), world.snapshot(2)], world.now)

    assert kinds(together()) == {"PodGang", "Pod", "PodClique"}
    world.carry_out(together())
    assert [name for name in world.api.all("PodClique") if name != "wl-0-a"] == []
    assert (together().intents, together().wake_at) == ((), world.now + PATIENCE)
    hands.finish_terminating(world, world.pods("wl-1-a"))
    assert together().intents == (), "the pods of the other replica are still there"
    hands.finish_terminating(world)
    assert kinds(together()) == {"Service"}
    world.carry_out(together())
    assert together() == Plan()


def test_cliques_go_after_their_pods_were_told_to_and_before_they_are_gone():
    """Upstream's tests count cliques at the moment when the last pod is gone."""
    world = running("a:2 b:1", "x:1/1=b")
    world.scale("PodCliqueSet", "wl", 0)
    plan = retire([world.snapshot()], world.now)
    after = {intent.id: intent.after for intent in plan.intents}
    pods = {f"delete Pod ns/{name}" for name in world.pods("wl-0-a")}
    assert pods <= set(after["delete PodClique ns/wl-0-a"])
    assert "delete PodClique ns/wl-0-x-0-b" in after["delete PodCliqueScalingGroup ns/wl-0-x"]
    world.settle()
    assert cliques(world) == []
    assert world.pods(), "they are still on their way out"
    assert retire([world.snapshot()], world.now).wake_at == world.now + PATIENCE, "and waited for"


def test_pods_that_do_not_go_do_not_hold_up_the_rest_for_ever():
    world = running("a:1", replicas=1)
    world.scale("PodCliqueSet", "wl", 0)
    world.settle()
    assert world.api.all("Service")
    world.now += PATIENCE
    world.settle()
    assert not world.api.all("Service")
    assert world.pods()


@pytest.mark.parametrize("gone", [False, True])
def test_a_replica_that_is_wanted_again_while_it_goes_is_made_whole(gone):
    world = running("a:2", replicas=1)
    before = set(world.pods())
    world.scale("PodCliqueSet", "wl", 0)
    world.settle()
    if gone:
        hands.finish_terminating(world)
    world.scale("PodCliqueSet", "wl", 1)
    world.settle()
    hands.finish_terminating(world)
    check_settled(world)
    check_history(world)
    assert len(world.pods()) == 2
    assert before.isdisjoint(world.pods()), "no name comes twice"


@pytest.mark.parametrize(
    ("kind", "name", "count", "forgets"),
    [
        ("PodClique", "wl-0-a", 1, "patch PodGang ns/wl-0"),
        ("PodClique", "wl-0-a", 0, "patch PodGang ns/wl-0"),
        ("PodCliqueScalingGroup", "wl-0-x", 1, "delete PodGang ns/wl-0-x-0"),
        ("PodCliqueScalingGroup", "wl-0-x", 0, "patch PodGang ns/wl-0"),
        ("PodCliqueSet", "wl", 0, "delete PodGang ns/wl-0"),
    ],
)
def test_a_count_is_confirmed_then_the_gang_forgets_then_the_pod_goes(kind, name, count, forgets):
    world = running("a:2/1 b:1", "x:2/1=b")
    world.scale(kind, name, count)
    intents = {intent.id: intent for intent in world.plan().intents}
    gangs = {gang: world.references(gang) for gang in world.api.all("PodGang")}
    assert f"patch {kind} ns/{name}" in intents[forgets].after
    for id_, intent in intents.items():
        if id_.startswith("delete Pod "):
            (gang,) = (gang for gang in gangs if any(intent.target.name in n for n in gangs[gang].values()))
            assert {f"patch PodGang ns/{gang}", f"delete PodGang ns/{gang}"} & set(intent.after), id_


def test_a_set_at_0_has_nothing_to_do():
    world = World(a_set("a:1", replicas=0))
    assert world.plan().intents == ()


def test_a_set_that_goes_is_left_to_its_own_plan():
    body = a_set("a:1")
    body["metadata"]["finalizers"] = ["grove.io/podcliqueset.grove.io"]
    world = World(body)
    world.settle()
    world.api.delete("PodCliqueSet", "wl")
    assert world.plan() == type(world.plan())()


@pytest.mark.parametrize("kind", ["PodClique", "PodCliqueScalingGroup", "PodCliqueSet"])
def test_whoever_has_an_old_count_is_stopped_before_it_costs_a_pod(kind):
    """The count was 1, is 3 and all 3 run; a leader of old still believes in 1."""
    world = World(a_set("a:1 b:1", "x:1/1=b"))
    world.settle()
    name = {"PodClique": "wl-0-a", "PodCliqueScalingGroup": "wl-0-x", "PodCliqueSet": "wl"}[kind]
    world.scale(kind, name, 0 if kind == "PodCliqueSet" else 1)
    old = len(world.api.past[kind])
    world.scale(kind, name, 1 if kind == "PodCliqueSet" else 3)
    for _ in range(2):
        world.settle()
        hands.run_all(world)
    before = world.pods(), everyone(world)
    stale = world.plan(lag={kind: len(world.api.past[kind]) - old})
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    assert not world.carry_out(stale)
    assert (world.pods(), everyone(world)) == before


def everyone(world: World) -> dict[str, dict[str, list[str]]]:
    return {gang: world.references(gang) for gang in world.api.all("PodGang")}
