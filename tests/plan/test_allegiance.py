"""A replica stays with the scheduler that it was made for, whatever becomes the default one later."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove.plan import pods as state
from grove.schedulers.backend import Backend
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.registry import Backends
from grove.schedulers.volcano import Volcano
from tests.plan import hands
from tests.plan.invariants import alive
from tests.plan.updating import change, quiet, status, tend
from tests.plan.world import Run, World
from tests.schedulers.builders import a_body

KAI, VOLCANO, KUBE = "kai-scheduler", "volcano", "default-scheduler"


def in_use(default: str, *others: Backend) -> Backends:
    listed = {each.name: each for each in (others or (Kube(), Kai(), Volcano()))}
    return Backends(listed, default)


def a_world(default: str = KUBE, replicas: int = 1) -> World:
    body = a_body("a:2/2 b:1", "x:2/1=b", queue="team-a")
    body["spec"]["replicas"] = replicas
    body["spec"]["template"]["terminationDelay"] = "10s"
    world = World(body)
    world.backends = in_use(default)
    quiet(world)
    return world


def schedulers(world: World) -> dict[str, set[str]]:
    """By replica, what its pods and its gangs name."""
    found: dict[str, set[str]] = {}
    for pod in alive(world):
        found.setdefault(pod.metadata.labels["grove.io/podgang"].split("-")[1], set()).add(
            pod.spec.scheduler_name
        )
    for gang in world.api.objects("PodGang"):
        replica = gang["metadata"]["labels"]["grove.io/podcliqueset-replica-index"]
        found.setdefault(replica, set()).add(gang["metadata"]["labels"]["grove.io/scheduler-name"])
    return found


def lose(world: World, *names: str) -> None:
    for name in names or tuple(world.pods()):
        hands.force_delete(world, name)


def test_nothing_is_done_about_a_replica_because_the_default_changes():
    world = a_world()
    for default in (KAI, VOLCANO):
        world.backends = in_use(default)
        assert world.plan().intents == ()


@pytest.mark.parametrize("fate", ["lost", "scaled", "rolled", "started anew", "all lost", "gang lost"])
def test_what_comes_later_goes_to_the_scheduler_of_those_that_are_there(fate: str):
    world = a_world()
    world.backends = in_use(KAI)
    before = set(world.pods())
    if fate == "lost":
        lose(world, next(iter(world.pods("wl-0-a"))))
    elif fate == "scaled":
        world.scale("PodClique", "wl-0-a", 3)
        world.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    elif fate == "rolled":
        change(world)
    elif fate == "started anew":
        lose(world, next(iter(world.pods("wl-0-a"))))
        tend(world)
        hands.refuse(world)
        world.now += 10.0
        tend(world)
        assert not before & {pod.metadata.name for pod in alive(world)}
    elif fate == "all lost":
        lose(world)
    else:
        world.api.delete("PodGang", "wl-0")
    quiet(world)
    assert fate == "gang lost" or set(world.pods()) != before
    assert schedulers(world) == {"0": {KUBE}}
    assert world.api.all("PodGroup") == {}


def test_replicas_that_are_made_later_get_the_default_of_then():
    world = a_world()
    world.backends = in_use(KAI)
    world.api.patch("PodCliqueSet", "wl", {"spec": {"replicas": 2}})
    quiet(world)
    assert schedulers(world) == {"0": {KUBE}, "1": {KAI}}
    assert {group["metadata"]["name"] for group in world.api.objects("PodGroup")} == {"wl-1", "wl-1-x-0"}


def test_pods_are_believed_where_a_gang_says_otherwise():
    world = a_world(KAI)
    world.backends = in_use(VOLCANO)
    for said in (KUBE, VOLCANO, "nobody"):
        patch = {"metadata": {"labels": {"grove.io/scheduler-name": said}}}
        world.api.patch("PodGang", "wl-0", patch, by="somebody")
        quiet(world)
        assert schedulers(world) == {"0": {KAI}}


def test_a_scheduler_that_is_in_use_no_more_keeps_its_pods_and_gets_no_new_replica():
    world = a_world(KAI)
    world.backends = in_use(KUBE, Kube())
    lose(world, next(iter(world.pods("wl-0-a"))))
    quiet(world)
    assert schedulers(world) == {"0": {KAI}}
    lose(world)
    quiet(world)
    assert schedulers(world) == {"0": {KUBE}}, "there is nobody left to be true to"


FORGOTTEN = "scheduler kai-scheduler is not in the operator's configuration and is told nothing: "
AGAIN = "list it in scheduler.profiles again, or "
MOVE = "recreate the replica, which then gets the default scheduler"
RENAME = "recreate the set for one that is listed"


def errors(world: World) -> list[str]:
    """What the set says is wrong."""
    told = status(world).get("lastErrors", ())
    assert {error["code"] for error in told} <= {"ERR_SYNC_PODGROUP"}
    return [error["description"].partition("message: ")[2] for error in told]


def test_that_a_scheduler_is_in_use_no_more_is_told_until_it_is_again():
    world = a_world(KAI, replicas=5)
    assert not world.plan().complaints
    world.backends = in_use(KUBE, Kube())
    quiet(world)
    assert {(each.clique, each.code, each.gang, each.reason) for each in world.plan(1).complaints} == {
        ("wl-1-a", "ERR_SYNC_PODGROUP", "wl-1", "SchedulerNotTold"),
        ("wl-1-x-0-b", "ERR_SYNC_PODGROUP", "wl-1", "SchedulerNotTold"),
        ("wl-1-x-1-b", "ERR_SYNC_PODGROUP", "wl-1-x-0", "SchedulerNotTold"),
    }
    assert {each.words for each in world.plan(1).complaints} == {FORGOTTEN + AGAIN + MOVE}
    assert errors(world) == [f"replicas 0, 1, 2 and 2 more: {FORGOTTEN}{AGAIN}{MOVE}"]
    assert "told nothing" not in str(status(world, "PodGang", "wl-1")), "it waits for nothing"
    world.backends = in_use(KUBE)
    quiet(world)
    assert world.plan(1).complaints == ()
    assert errors(world) == []


def test_replicas_that_are_made_anew_are_not_told_of_any_more():
    world = a_world(KAI, replicas=2)
    world.backends = in_use(KUBE, Kube())
    lose(world, *(name for name in world.pods() if name.startswith("wl-1-")))
    quiet(world)
    assert schedulers(world) == {"0": {KAI}, "1": {KUBE}}
    assert world.plan(1).complaints == ()
    assert errors(world) == [f"replica 0: {FORGOTTEN}{AGAIN}{MOVE}"]


def test_a_gang_that_waits_says_that_its_scheduler_does_not_know_of_it():
    world = a_world(KAI)
    world.backends = in_use(KUBE, Kube())
    lose(world, *world.pods("wl-0-a"))
    tend(world)
    (said,) = (
        each["message"]
        for each in status(world, "PodGang", "wl-0")["conditions"]
        if each["type"] == "Scheduled"
    )
    assert said == f"Too few pods scheduled in wl-0-a; {FORGOTTEN}{AGAIN}{MOVE}"
    assert len(world.pods("wl-0-a")) == 2, "nobody is held up"


def test_a_scheduler_in_use_no_more_does_not_hold_up_what_the_set_asks_for():
    world = a_world(KAI)
    world.backends = in_use(KUBE, Kube())
    change(world)
    quiet(world)
    (draft,) = world.plan_set().drafts
    assert draft.desired.last_errors
    generation = world.api.get("PodCliqueSet", "wl")["metadata"]["generation"]
    assert draft.desired.observed_generation == generation


def test_a_set_that_names_a_scheduler_in_use_no_more_is_told_what_helps():
    body = a_body("a", queue="team-a")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = KAI
    world = World(body)
    world.backends = in_use(KUBE, Kube())
    quiet(world)
    assert {each.words for each in world.plan().complaints} == {FORGOTTEN + AGAIN + RENAME}
    assert errors(world) == [f"replica 0: {FORGOTTEN}{AGAIN}{RENAME}"]


def test_a_set_that_names_its_scheduler_is_not_asked():
    world = a_world()
    body = a_body("a", queue="team-a")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = VOLCANO
    named = World(body)
    named.backends = world.backends
    quiet(named)
    assert schedulers(named) == {"0": {VOLCANO}}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 14), st.sampled_from([KUBE, KAI, VOLCANO])), max_size=5), st.integers()
)
def test_wherever_operators_of_different_minds_are_cut_short_no_replica_is_split(reigns, seed):
    body = a_body("a:2 b:2", "x:2/1=b", queue="team-a")
    world, pick = World(body), Random(seed)
    world.backends = in_use(KUBE)
    for writes, default in reigns:
        world.backends = in_use(default)
        run = Run(world, world.plan(), pick)
        for _ in range(writes):
            run.go_on()
        assert len({pod.spec.scheduler_name for pod in world.pods().values() if state.alive(pod)}) <= 1
    world.settle()
    (only,) = schedulers(world).values()
    assert len(only) == 1
