"""Sets whose templates change: what tests do to them and ask of them."""

from __future__ import annotations

from collections import Counter

from grove.api import labels
from grove.plan.hashes import template_hash
from tests.plan import hands
from tests.plan.api_server import Body
from tests.plan.builders import a_set, read_set
from tests.plan.invariants import alive, clique_of
from tests.plan.world import World

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


def status(world: World, kind: str = "PodCliqueSet", name: str = "wl") -> Body:
    return world.api.get(kind, name).get("status", {})


def progress(world: World, kind: str = "PodCliqueSet", name: str = "wl") -> Body:
    return status(world, kind, name).get("updateProgress", {})


def turn(world: World) -> list[int]:
    return [entry["replicaIndex"] for entry in progress(world).get("currentlyUpdating", ())]


def names(world: World) -> set[str]:
    return {pod.metadata.name for pod in alive(world)}


def breached(world: World, kind: str, name: str) -> str:
    facts = status(world, kind, name)["conditions"]
    return next(fact["status"] for fact in facts if fact["type"] == "MinAvailableBreached")
