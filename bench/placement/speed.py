"""How long an answer takes, in seconds of one core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from time import process_time
from typing import Any

from bench.placement import clusters, gangs
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import NodeUse, Problem
from grove.topology.placement.solve import solve

SEEDS = 100
NODES = 5000
GROWTH = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
GROWTH_SEEDS = 4
Make = Callable[[Random, bool], Problem]


def thousand(random: Random, feasible: bool) -> Problem:
    return gangs.large(1000, random, feasible)


def measure() -> dict[str, Any]:
    """1,000 and 10 pods on 5,000 nodes, each seed with its own cluster; and growth with the cluster."""
    return {
        "1000 pods": _speed(thousand, NODES, SEEDS),
        "10 pods": _speed(gangs.small, NODES, SEEDS),
        "growth": [
            {
                "nodes": count,
                "1000 pods": _speed(thousand, count, GROWTH_SEEDS),
                "10 pods": _speed(gangs.small, count, GROWTH_SEEDS),
            }
            for count in GROWTH
        ],
    }


def _speed(make: Make, nodes: int, seeds: int) -> dict[str, Any]:
    solved: list[float] = []
    prepared: list[float] = []
    updated: list[float] = []
    answers: Counter[str] = Counter()
    for seed in range(seeds):
        random = Random(seed)
        listed = clusters.nodes(nodes, random)
        use = clusters.fill(listed, random)
        start = process_time()
        index = ClusterIndex(clusters.LEVELS, listed, use)
        prepared.append(process_time() - start)
        start = process_time()
        for node in random.sample(listed, 100):
            index.set_use(node.name, use.get(node.name, NodeUse()))
        updated.append((process_time() - start) / 100)
        problem = make(random, seed % 2 == 0)
        start = process_time()
        answer = solve(index, problem)
        solved.append(process_time() - start)
        answers[
            type(answer).__name__ + ("" if getattr(answer, "optimal", True) else ", not proven best")
        ] += 1
    return {
        "p50": _percentile(solved, 0.5),
        "p99": _percentile(solved, 0.99),
        "prepare": _percentile(prepared, 0.5),
        "update_a_node": _percentile(updated, 0.5),
        "answers": dict(sorted(answers.items())),
    }


def _percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
