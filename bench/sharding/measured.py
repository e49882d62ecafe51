"""The measured figures that the model starts from, read from bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parents[1] / "results"
PLACEMENT_ROUNDS = ("nominated", "backlog", "released")
"""The rounds in which gangs are nominated, wait for pods in flight, and are released."""
Result = dict[str, Any]


class Watched(NamedTuple):
    """What the watches of a start send for each pod."""

    events: float
    bytes: float

    def __add__(self, other: object) -> Watched:
        assert isinstance(other, Watched)
        return Watched(self.events + other.events, self.bytes + other.bytes)


class Measured(NamedTuple):
    """One process, and the API server of the same run."""

    pods: int
    gangs: int
    calls: int
    cpu: float
    """Seconds of CPU of the operator from the first request until all pods are ready."""
    floor: float
    """Seconds in which a client without any logic gets as many pods ready: the bound of the API server."""
    objects: int
    """Objects that the operator has created, pods included."""
    base_mib: float
    kib_per_pod: float
    events_per_cpu_second: float
    placement_cpu_per_gang: float
    """On 500 nodes."""
    search: dict[int, float]
    """Seconds of CPU of the search for a gang of 10 pods, by the number of nodes."""
    watched: Watched
    """The objects of sets, of all kinds."""
    watched_pods: Watched
    watched_gangs: Watched

    @property
    def pods_per_second(self) -> float:
        """What one process could do if the API server were not slower."""
        return self.pods / self.cpu

    def memory(self, pods: float) -> float:
        """MiB of a process that has so many pods."""
        return self.base_mib + self.kib_per_pod * pods / 1024

    @property
    def worth(self) -> float:
        """How many times as fast the API server has to be until one process is the bound."""
        return self.floor / self.cpu


def read(folder: Path = RESULTS) -> Measured:
    """The figures of the last runs."""
    core, ours = _load(folder, "core"), _load(folder, "core")["ours"]
    kube, rounds = _load(folder, "kube"), _load(folder, "placement")["rounds"][-1]
    searches = _load(folder, "placement")["speed"]["growth"]
    sizes = memory_by_pods(core) | memory_by_pods(_load(folder, "growth"))
    base, per_pod = line(sizes)
    created = {call: count for call, count in ours["by_call"].items() if call.startswith("create ")}
    by_kind = watched(_load(folder, "sharding"), ours)
    return Measured(
        pods=ours["pods"],
        gangs=created["create podgangs"],
        calls=ours["calls"],
        cpu=ours["cpu"],
        floor=core["floor"]["ready"],
        objects=sum(count for call, count in created.items() if call != "create events"),
        base_mib=base,
        kib_per_pod=per_pod * 1024,
        events_per_cpu_second=kube["watch"]["grove.kube"]["events_per_cpu_second"],
        placement_cpu_per_gang=sum(rounds["seconds"][each] for each in PLACEMENT_ROUNDS) / rounds["gangs"],
        search={each["nodes"]: each["10 pods"]["p50"] for each in searches},
        watched=sum(by_kind.values(), Watched(0, 0)),
        watched_pods=by_kind["pods"],
        watched_gangs=by_kind["podgangs"],
    )


def _load(folder: Path, name: str) -> Result:
    """The results of a benchmark; empty if it has none yet."""
    file = folder / f"{name}.json"
    found: Result = json.loads(file.read_text()) if file.exists() else {}
    return found


def watched(trial: Result, ours: Result) -> dict[str, Watched]:
    """By kind. Each write of the run is an event for the operator. Of pods the scheduler and the kubelet
    write more: the trial has counted their events, and the bytes of the events of all kinds."""
    found = {}
    for kind, (whole, *_) in trial["watched"].items():
        events = _writes(ours["by_call"], kind) / ours["pods"]
        if kind == "pods":
            events = whole["events"] / trial["pods"]
        found[kind] = Watched(events, events * whole["bytes"] / whole["events"])
    return found


def _writes(by_call: dict[str, int], kind: str) -> int:
    """Writes of objects of a kind and of their statuses."""
    return sum(count for call, count in by_call.items() if call.split()[-1].split("/")[0] == kind)


def memory_by_pods(result: Result) -> dict[int, float]:
    """The largest memory for each number of pods, wherever a run has both; not beside the pods of others."""
    found: dict[int, float] = {}
    for run in _runs(result):
        if {"pods", "rss_mib"} <= run.keys() and not run.get("foreign"):
            pods = int(run["pods"])
            found[pods] = max(found.get(pods, 0.0), float(run["rss_mib"]))
    return found


def _runs(value: object) -> Iterator[Result]:
    """All objects of a JSON document."""
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _runs(child)


def line(points: dict[int, float]) -> tuple[float, float]:
    """The line through measured points with the least squares: its value at zero, and its slope."""
    mean_x, mean_y = sum(points) / len(points), sum(points.values()) / len(points)
    spread = sum((x - mean_x) ** 2 for x in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points.items()) / spread if spread else 0.0
    return mean_y - slope * mean_x, slope
