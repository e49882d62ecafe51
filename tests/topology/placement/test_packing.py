"""Gangs that nearly fill the cluster, and gangs that only together are too large for it."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest

from grove.topology.placement.answers import NoFit, Placed, Reason
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import NodeUse, Problem, Unit
from grove.topology.placement.solve import solve
from tests.topology.placement.brute_force import is_valid
from tests.topology.placement.builders import GPU, LEVELS, a_node, a_shape, pods

SHAPES = {gpus: a_shape(gpus) for gpus in (1, 2, 3, 4, 8)}
KINDS = ((8, 1), (4, 3), (3, 2), (2, 5), (1, 7))
"""GPUs of a pod, and pods of a clique."""


def full_racks(random: Random, zones: int = 4) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """The free GPUs of nodes in racks of 4, and by zone the cliques that fill them exactly."""
    free, groups = [], []
    for _ in range(zones * 4):
        nodes, cliques = [0] * 4, []
        while True:
            gpus, count = random.choice(KINDS)
            placed = _pack(nodes, gpus, count, random)
            if placed is None:
                break
            nodes = placed
            cliques.append((gpus, count))
        free += nodes
        groups.append(cliques)
    return free, [list(chain(*groups[4 * zone : 4 * zone + 4])) for zone in range(zones)]


def _pack(nodes: list[int], gpus: int, count: int, random: Random) -> list[int] | None:
    after = nodes.copy()
    for _ in range(count):
        fitting = [i for i, used in enumerate(after) if used + gpus <= 8]
        if not fitting:
            return None
        after[random.choice(fitting)] += gpus
    return after


def gang_of(zones: list[list[tuple[int, int]]]) -> Unit:
    """Group replicas of two cliques that fit into one zone, with a rack for each clique."""
    groups: list[Unit] = []
    for cliques in zones:
        for pair in zip(cliques[0::2], cliques[1::2], strict=False):
            name = f"{len(groups)}"
            parts = (
                Unit(f"{name}-{i}", "rack", "", (), pods(f"{name}-{i}-", count, SHAPES[gpus]))
                for i, (gpus, count) in enumerate(pair)
            )
            groups.append(Unit(name, "zone", "", tuple(parts)))
    return Unit("gang", "", "", tuple(groups))


@pytest.mark.parametrize("seed", [3, 11])
def test_gang_that_fills_the_racks_is_packed(seed: int) -> None:
    free, zones = full_racks(Random(seed))
    nodes = [a_node(f"{i // 16}/{i // 4}/n{i:02}") for i in range(len(free))]
    use = {node.name: NodeUse({0: {GPU: 8 - free[i]}}) for i, node in enumerate(nodes)}
    problem = Problem(gang_of(zones))
    answer = solve(ClusterIndex(LEVELS, nodes, use), problem)
    assert isinstance(answer, Placed)
    assert is_valid((LEVELS, nodes, use), problem, dict(answer.nodes))


def test_classes_that_fit_alone_but_not_together_do_not_fit() -> None:
    nodes = [a_node(f"a/1/n{i:02}", 7) for i in range(40)]
    both = (*pods("four-", 21, a_shape(4)), *pods("six-", 20, a_shape(6)))
    answer = solve(ClusterIndex(LEVELS, nodes), Problem(Unit("gang", "rack", "", (), both)))
    assert isinstance(answer, NoFit)
    assert answer.reports[0].shortages[0].reason == Reason.FRAGMENTED
