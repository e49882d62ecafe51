"""Random gangs with constraints at three levels, half of them too large for the cluster."""

from __future__ import annotations

from random import Random

from bench.placement.clusters import GPU, SHAPES
from grove.topology.placement.model import Pod, Problem, Unit

_GROUP = 50
"""Pods of one group replica of a large gang."""


def large(pods: int, random: Random, feasible: bool) -> Problem:
    """A zone for the gang, a block for each group replica, a rack for each clique."""
    groups = []
    for number in range(pods // _GROUP):
        small, medium = (16, 4) if feasible else _too_many(random)
        cliques = [
            clique(f"{number}-decode", "small", small, "rack"),
            clique(f"{number}-prefill", "medium", medium, "rack"),
            clique(f"{number}-leader", "large", 1, "rack"),
        ]
        routers = max(1, _GROUP - small - medium - 1)
        cliques.append(clique(f"{number}-router", "router", routers, ""))
        groups.append(Unit(f"{number}", "block", random.choice(("", "rack")), tuple(cliques)))
    return Problem(Unit("gang", "zone", random.choice(("", "block")), tuple(groups)))


def small(random: Random, feasible: bool) -> Problem:
    """Ten pods: a block for the gang, a rack for the group, preferably one node for a clique."""
    gpus = "small" if feasible else "large"
    cliques = (clique("workers", gpus, 7, "rack"), clique("leader", "medium", 1, ""))
    group = Unit("group", "rack", "", cliques)
    routers = clique("router", "router", 2, "")
    return Problem(Unit("gang", "block", random.choice(("", "rack")), (group, routers)))


def clique(name: str, shape: str, count: int, required: str) -> Unit:
    pods = tuple(Pod(f"{name}-{i}", SHAPES[shape]) for i in range(count))
    return Unit(name, required, "", (), pods)


def gpus_of(unit: Unit) -> int:
    return sum(pod.shape.requests[GPU] for pod in unit.pods) + sum(map(gpus_of, unit.parts))


def _too_many(random: Random) -> tuple[int, int]:
    """Cliques that no zone can hold: too many GPUs in all, or too many free nodes in one rack."""
    return random.choice(((16, 32), (44, 4), (30, 18)))
