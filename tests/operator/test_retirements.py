"""When a set is to see to its replicas that go: not for each pod, and not later than it can."""

from __future__ import annotations

from grove.operator.keys import ReplicaKey, SetKey
from grove.operator.retirements import Retirements
from grove.plan.retire import PATIENCE
from grove.plan.snapshot import Snapshot
from tests.plan import hands
from tests.plan.builders import a_set
from tests.plan.world import World

KEY = SetKey("ns", "wl")
FINALIZER = ["grove.io/podcliqueset.grove.io"]


class Seen:
    """Observes a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def replica(self, key: ReplicaKey) -> Snapshot:
        return self._world.snapshot(key.replica)


def running(replicas: int) -> World:
    body = a_set("a:2", replicas=replicas)
    body["metadata"]["finalizers"] = FINALIZER
    world = World(body)
    for index in range(replicas):
        world.settle(index)
    hands.run_all(world)
    return world


def noted(retirements: Retirements, world: World, *indices: int) -> list[bool]:
    """Whether the set is called when each of these replicas is looked at."""
    return [retirements.note(ReplicaKey(*KEY, index), world.snapshot(index)) for index in indices]


def test_replicas_that_are_too_many() -> None:
    world = running(3)
    retirements = Retirements(Seen(world))  # type: ignore[arg-type]
    assert not retirements.plan(KEY, world.now).intents
    world.scale("PodCliqueSet", "wl", 1)
    assert noted(retirements, world, 1, 2) == [True, True], "there is something to do"
    world.carry_out(retirements.plan(KEY, world.now))
    assert noted(retirements, world, 1, 2) == [False, False], "pods are on their way"
    assert retirements.plan(KEY, world.now).wake_at == world.now + PATIENCE
    hands.finish_terminating(world, world.pods("wl-1-a"))
    assert noted(retirements, world, 1) == [False], "so are those of another replica"
    hands.finish_terminating(world)
    assert noted(retirements, world, 2) == [True], "the last pod is gone"
    world.carry_out(retirements.plan(KEY, world.now))
    assert retirements.plan(KEY, world.now).intents == ()
    assert list(world.api.all("PodClique")) == ["wl-0-a"]


def test_replicas_that_are_wanted_again_hold_up_nobody() -> None:
    world = running(3)
    retirements = Retirements(Seen(world))  # type: ignore[arg-type]
    world.scale("PodCliqueSet", "wl", 1)
    noted(retirements, world, 1, 2)
    world.scale("PodCliqueSet", "wl", 2)
    world.carry_out(retirements.plan(KEY, world.now))
    hands.finish_terminating(world)
    assert noted(retirements, world, 2) == [True]
    assert len(world.pods("wl-1-a")) == 2


def test_the_replicas_of_a_set_that_ends() -> None:
    world = running(2)
    retirements = Retirements(Seen(world))  # type: ignore[arg-type]
    world.api.delete("PodCliqueSet", "wl")
    assert noted(retirements, world, 0, 1) == [False, False], "it knows by itself"
    for pod in world.pods():
        world.api.delete("Pod", pod)
    hands.finish_terminating(world, world.pods("wl-0-a"))
    assert noted(retirements, world, 0) == [False]
    hands.finish_terminating(world)
    assert noted(retirements, world, 1) == [True]


def test_replicas_that_were_never_made_are_not_looked_at_again() -> None:
    world = running(2)
    retirements = Retirements(Seen(world))  # type: ignore[arg-type]
    world.scale("PodCliqueSet", "wl", 1)
    assert noted(retirements, world, 2, 3, 40_000) == [False] * 3
    assert noted(retirements, world, 1) == [True]
    assert retirements.count(KEY) == 1
