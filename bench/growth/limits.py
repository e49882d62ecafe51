"""The limits of growth: what each pod costs stays the same, whatever the number of pods.

calls and CPU of a pod, ready / floor     at each size     / the same at the first size      <= 1.10
memory of each further pod                between sizes    / between the first two sizes     <= 1.10
"""

from __future__ import annotations

from itertools import pairwise
from statistics import mean
from typing import Any

from bench.core.limits import Limit

FLAT = 1.10
FAIR = 2.0
TOO_LATE = 2
"""Of five: a median of fewer than three says little about a start."""
READY, CALLS = 1.10, 4.0 / 3.5
"""Those of bench.core: 1,000 pods ready / contract floor, and calls / contract's."""
STEADY = 1.05
EARLY, LATE = slice(4, 15), slice(-10, None)
"""Cycles: the first four fill caches and pools of the process."""
ENOUGH_CYCLES = 25
"""So that early and late cycles are different ones."""
LEAST_KIB = 0.1
"""Of a further pod. Small sizes may need no more memory than the size before."""
Result = dict[str, Any]


def limits(name: str, result: Result) -> list[Limit]:
    """The limits of one measurement."""
    match name:
        case "restart":
            what = f"restart with {result['pods']:,} pods: writes"
            return [Limit(what, result["writes"], None, 0)]
        case "many_sets":
            return _of_many_sets(result)
        case "fairness":
            what = f"{result['pods']} pods beside {result['large_replicas']:,} replicas / alone"
            late = "small sets that were ready after the large start"
            return [
                Limit(what, result["beside"]["ready"], result["alone"]["ready"], FAIR),
                Limit(late, result["runs_too_late"], None, TOO_LATE),
            ]
        case "cycles":
            return _of_cycles(result)
    return _of_sizes(f"gangs of {result['pods_each']}", result["sizes"])


def _of_sizes(label: str, rows: list[Result]) -> list[Limit]:
    first, found = rows[0], list[Limit]()
    for row in rows[1:]:
        sizes = f"{row['pods']:,} / {first['pods']:,} pods"
        for key, what in (("calls_per_pod", "calls per pod"), ("cpu_ms_per_pod", "CPU per pod, ms")):
            what = f"{label}: {what}, {sizes}"
            found.append(Limit(what, row["ours"][key], first["ours"][key], FLAT))
        found.append(Limit(f"{label}: ready / floor, {sizes}", _to_floor(row), _to_floor(first), FLAT))
    steps = marginal_kib(rows)
    for (start, end, kib), (start_1, end_1, kib_1) in ((step, steps[0]) for step in steps[1:]):
        what = f"{label}: KiB per further pod, {start:,}-{end:,} / {start_1:,}-{end_1:,}"
        found.append(Limit(what, max(kib, LEAST_KIB), max(kib_1, LEAST_KIB), FLAT))
    return found


def marginal_kib(rows: list[Result]) -> list[tuple[int, int, float]]:
    """Between two sizes each: the memory of each further pod, without the base that any process needs."""
    return [
        (
            small["pods"],
            large["pods"],
            (large["ours"]["rss_mib"] - small["ours"]["rss_mib"]) * 1024 / (large["pods"] - small["pods"]),
        )
        for small, large in pairwise(rows)
    ]


def _to_floor(row: Result) -> float:
    return float(row["ours"]["ready"] / row["floor"]["ready"])


def _of_many_sets(result: Result) -> list[Limit]:
    ours, floor, sets = result["ours"], result["floor"], result["sets"]
    return [
        Limit(f"{sets} sets at once: ready / floor", ours["ready"], floor["ready"], READY),
        Limit(f"{sets} sets at once: calls / contract's", ours["calls"], floor["calls"], CALLS),
    ]


def _of_cycles(result: Result) -> list[Limit]:
    memory = result["resident_mib"]
    if len(memory) < ENOUGH_CYCLES:
        return []
    what = f"{len(memory)} cycles: MiB, last ten / 5 to 15"
    return [Limit(what, mean(memory[LATE]), mean(memory[EARLY]), STEADY)]
