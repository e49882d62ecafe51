"""The model: what several processes gain and cost, from measured figures of one. Pure, and the same for the
same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import mean, median
from typing import NamedTuple

from bench.sharding.measured import Measured, Watched
from bench.sharding.namespaces import Names, names_of, zipf_loads
from bench.sharding.ranges import HashRange, equal_ranges, loads_of, ranges_by_load

MIB = 1 << 20
Cut = Callable[[Mapping[str, float], int], Sequence[HashRange]]


class Spread(NamedTuple):
    """How much faster the ranges together are than one process: the largest load is the bound."""

    median: float
    worst: float


class Lease(NamedTuple):
    """The times of a lease, in seconds."""

    duration: float
    retry: float


def cut_equally(loads: Mapping[str, float], count: int) -> Sequence[HashRange]:  # noqa: ARG001
    """Ranges of the same size, whatever the load."""
    return equal_ranges(count)


def cut_by_load(loads: Mapping[str, float], count: int) -> Sequence[HashRange]:
    """Ranges between whose bounds the load is as even as possible."""
    return ranges_by_load(loads, count)


def spread(style: Names, cut: Cut, namespaces: int, count: int, *, seeds: int) -> Spread:
    """The speed-up of `count` ranges over many clusters with random names."""
    found = []
    for seed in range(seeds):
        loads = zipf_loads(names_of(style, namespaces, Random(seed)))
        found.append(1 / max(loads_of(cut(loads, count), loads)))
    return Spread(median(found), min(found))


def _placement_watches(measured: Measured) -> Watched:
    """What a process for placement watches in all namespaces: pods and gangs."""
    return measured.watched_pods + measured.watched_gangs


def placer_cpu(measured: Measured) -> float:
    """Seconds of CPU that stay in one process for the pods of the run: decisions on all gangs as on nodes
    that are scarce, and the events of all pods and gangs."""
    events = measured.pods * _placement_watches(measured).events
    decoding = events / measured.events_per_cpu_second
    return measured.gangs * measured.placement_cpu_per_gang + decoding


def serial_share(measured: Measured) -> float:
    """The share of the CPU of one process that cannot be divided into ranges."""
    return placer_cpu(measured) / measured.cpu


def seconds_to_ready(measured: Measured, api_server: float, speed_up: float | None) -> float:
    """Seconds until the pods of the run are ready with an API server so many times as fast: the slowest of
    API server, placement and largest range. `speed_up`: of the ranges; None: one process, as today."""
    floor = measured.floor / api_server
    if speed_up is None:
        return max(floor, measured.cpu)
    serial = placer_cpu(measured)
    return max(floor, serial, (measured.cpu - serial) / speed_up)


class Traffic(NamedTuple):
    """The watches of a start, of all processes together, and the memory of the process of one range."""

    events: float
    mib: float
    cpu: float
    range_mib: float


def traffic(measured: Measured, pods: int, count: int, *, server_side: bool) -> Traffic:
    """`count` processes with a range each, and one for placement if there is more than one range; a single
    process watches the pods a second time for it. Without selection by the server each process decodes
    everything, and drops what is not in its range."""
    extra = _placement_watches(measured) if count > 1 else measured.watched_pods
    sent = 1 if server_side else count
    events = pods * (measured.watched.events * sent + extra.events)
    mib = pods * (measured.watched.bytes * sent + extra.bytes) / MIB
    cpu = events / measured.events_per_cpu_second
    return Traffic(events, mib, cpu, measured.memory(pods / count))


class Takeover(NamedTuple):
    """What the failure of one process costs, in seconds; `share` of the pods are affected."""

    share: float
    mean_pause: float
    longest_pause: float
    objects: float
    listing: float


def takeover(measured: Measured, lease: Lease, pods: int, count: int, *, seed: int, crashes: int) -> Takeover:
    """Processes crash at a random moment between two renewals. The next holder waits for the end of the
    lease, and then lists the range: it has watched nothing of it. A follower of a single leader has."""
    rng = Random(seed)
    waits = [lease.duration - rng.uniform(0, lease.retry) for _ in range(crashes)]
    objects = pods / count * measured.objects / measured.pods if count > 1 else 0.0
    listing = objects / measured.events_per_cpu_second
    return Takeover(1 / count, mean(waits) + listing, max(waits) + listing, objects, listing)


def calls_per_pod(measured: Measured, *, placed_apart: bool) -> float:
    """API calls for each pod. Where placement is another process, its decision on a gang is a write of its
    own instead of a part of the gang's."""
    return (measured.calls + (measured.gangs if placed_apart else 0)) / measured.pods
