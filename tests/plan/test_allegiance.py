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
from tests.plan.updating import change, quiet, tend
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
