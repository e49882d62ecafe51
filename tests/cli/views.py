"""What a command would have read, from a world that plans were carried out on."""

from __future__ import annotations

from grove.api.cliques import PodClique
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.cli.overview import Found, SetView, overview
from tests.plan import hands
from tests.plan.builders import Body, a_set
from tests.plan.world import World, read


def found(world: World) -> Found:
    def all_(kind: type) -> tuple:
        return tuple(read(kind.__name__, stored) for stored in world.api.all(kind.__name__).values())

    return Found(*map(all_, (PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, Pod)))


def view(world: World) -> SetView:
    (seen,) = overview(found(world))
    return seen


def a_world(*, running: bool = True) -> World:
    """A clique of three, two of them needed, and a group of two replicas; one of each is a scaled gang."""
    world = World(a_set("router:3/2 leader:1", "model:2/1=leader", name="demo"))
    world.settle()
    if running:
        for _ in range(2):  # the scaled gang follows the base gang
            hands.run_all(world)
            world.settle()
        tell(world, {"availableReplicas": 1})
    return world


def tell(world: World, status: Body) -> None:
    """What the roll-up of a set, which is not part of this world, would have told."""
    world.api.patch("PodCliqueSet", world.set_name, {"status": status}, status=True)
