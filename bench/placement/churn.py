"""Quality over time: the same gangs arrive and leave on equal clusters, and each algorithm places them.

Gangs have pods of one shape, as Kueue's algorithm expects it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from bench.placement import clusters
from bench.placement.level_by_level import best_fit, first_fit
from grove.topology.placement.answers import Placed
from grove.topology.placement.capacity import Accelerators, free_slots
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import NodeUse, Pod, Problem, Unit
from grove.topology.placement.solve import solve

NODES, EVENTS = 1024, 2000
SEEDS = range(1000, 1008)
"""For the report; algorithms are tuned with others."""
LOAD = 0.85
"""Share of the GPUs that gangs ask for in the mean."""
SAMPLES = 100
"""Events between two samples of what is left."""


class Gang(NamedTuple):
    name: str
    shape: str
    count: int
    required: str
    preferred: str


Algorithm = Callable[[ClusterIndex, Gang], list[str] | None]


def ours(index: ClusterIndex, gang: Gang) -> list[str] | None:
    pods = tuple(Pod(f"{i}", clusters.SHAPES[gang.shape]) for i in range(gang.count))
    answer = solve(index, Problem(Unit(gang.name, gang.required, gang.preferred, (), pods)))
    return list(answer.nodes.values()) if isinstance(answer, Placed) else None


def kueue(index: ClusterIndex, gang: Gang) -> list[str] | None:
    return best_fit(index, clusters.SHAPES[gang.shape], gang.count, gang.required, gang.preferred)


def first(index: ClusterIndex, gang: Gang) -> list[str] | None:
    return first_fit(index, clusters.SHAPES[gang.shape], gang.count, gang.required)


ALGORITHMS: dict[str, Algorithm] = {"ours": ours, "first fit": first, "best fit by level (Kueue)": kueue}


def measure() -> dict[str, Any]:
    """The means over several seeds, by algorithm."""
    found = {}
    for name, algorithm in ALGORITHMS.items():
        runs = [_play(algorithm, seed) for seed in SEEDS]
        found[name] = {what: sum(run[what] for run in runs) / len(SEEDS) for what in runs[0]}
    return found


def _play(algorithm: Algorithm, seed: int) -> dict[str, float]:
    random = Random(seed)
    index = ClusterIndex(clusters.LEVELS, clusters.nodes(NODES, random))
    running: dict[str, list[str]] = {}
    shapes: dict[str, str] = {}
    leaving: list[tuple[int, str]] = []
    accepted = arrived = 0
    shares, whole, slots = list[float](), list[int](), list[int]()
    for event in range(EVENTS):
        for _, name in [each for each in leaving if each[0] <= event]:
            if nodes := running.pop(name, None):
                _change(index, nodes, shapes[name], -1)
        leaving = [each for each in leaving if each[0] > event]
        gang = _gang(random, event)
        leaving.append((event + _lifetime(random), gang.name))
        arrived += 1
        placed = algorithm(index, gang)
        if placed is not None:
            accepted += 1
            running[gang.name], shapes[gang.name] = placed, gang.shape
            _change(index, placed, gang.shape, 1)
            shares.append(_share(index, placed, gang.preferred or "rack"))
        if event >= EVENTS // 2 and event % SAMPLES == 0:
            whole.append(_whole_racks(index))
            slots.append(_slots(index, 64))
    return {
        "accepted": accepted,
        "arrived": arrived,
        "share_in_best_domain": sum(shares) / len(shares),
        "whole_racks_left": sum(whole) / len(whole),
        "slots_of_64_gpus_left": sum(slots) / len(slots),
    }


def _slots(index: ClusterIndex, size: int) -> int:
    """The free slots of the narrowest level."""
    gpu, free = index.dims[clusters.GPU], index.actual.free
    ready = (i for i in index.ids.values() if index.node(i).ready and not index.node(i).unschedulable)
    nodes = (Accelerators(index.paths[i], index.empty.free[i][gpu], free[i][gpu]) for i in ready)
    return free_slots(nodes, len(index.levels), (size,))[-1][size]


def _gang(random: Random, number: int) -> Gang:
    shape = random.choice(("small", "small", "medium", "large"))
    gpus = random.choice((4, 8, 16, 16, 32, 64))
    count = max(1, gpus // clusters.SHAPES[shape].requests[clusters.GPU])
    required, preferred = random.choice((("rack", ""), ("block", "rack"), ("zone", "rack"), ("", "block")))
    return Gang(f"gang-{number}", shape, count, required, preferred)


def _lifetime(random: Random) -> int:
    """Events until a gang leaves, so that the mean load is as intended: gangs have 23 GPUs in the mean."""
    mean = LOAD * NODES * 8 / 23
    return 1 + int(random.expovariate(1 / mean))


def _change(index: ClusterIndex, nodes: list[str], shape: str, sign: int) -> None:
    for name, count in Counter(nodes).items():
        used = Counter(index.use_of(name).by_priority.get(0, {}))
        for resource, amount in clusters.SHAPES[shape].requests.items():
            used[resource] += sign * amount * count
        index.set_use(name, NodeUse({0: dict(used)}))


def _share(index: ClusterIndex, nodes: list[str], level: str) -> float:
    position = index.levels.index(level)
    counts = Counter(index.domain_at(index.ids[name], position) for name in nodes)
    return max(counts.values()) / len(nodes)


def _whole_racks(index: ClusterIndex) -> int:
    return sum(not index.actual.busy.get(rack) for rack in index.subdomains((), len(index.levels) - 1))
