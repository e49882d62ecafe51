"""The tables of docs/decisions/shards.md, in Markdown, computed from bench/results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bench.sharding import model
from bench.sharding.measured import Measured
from bench.sharding.namespaces import Names
from grove import timing

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "shards.md"
COUNTS = (2, 4, 8)
NAMESPACES = 100
SEEDS = 50
PODS = 10_000
MANY = 100_000
SEARCHED_NODES = (500, 5000, 50_000)
FASTER = (1, 2, 4, 8, 16)
CRASHES = 1000
_CUTS: tuple[tuple[str, Names, model.Cut], ...] = (
    ("equal ranges, unrelated names", Names.UNRELATED, model.cut_equally),
    ("equal ranges, numbered names", Names.NUMBERED, model.cut_equally),
    ("ranges cut by load, unrelated names", Names.UNRELATED, model.cut_by_load),
    ("ranges cut by load, numbered names", Names.NUMBERED, model.cut_by_load),
)


def tables(measured: Measured) -> dict[str, str]:
    """All tables by name."""
    return {
        "process": _process(measured),
        "spread": _spread(),
        "speed": _speed(measured),
        "watches": _watches(measured),
        "takeover": _takeover(measured),
    }


def insert(text: str, found: dict[str, str]) -> str:
    """The page with these tables between their marks."""
    for name, table in found.items():
        begin, end = f"<!-- {name}: python -m bench.sharding -->", f"<!-- end of {name} -->"
        text, count = re.subn(
            f"{re.escape(begin)}.*?{re.escape(end)}",
            lambda _, begin=begin, table=table, end=end: f"{begin}\n{table}\n{end}",
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"docs/decisions/shards.md has {count} places for the table {name}")
    return text


def _process(measured: Measured) -> str:
    serial = model.serial_share(measured)
    return _table(
        ("", f"{measured.pods:,} pods"),
        [
            ("CPU of the operator, s", f"{measured.cpu:.1f}"),
            ("contract floor: bound of API server, scheduler and nodes, s", f"{measured.floor:.1f}"),
            ("pods a second that one process can do", f"{measured.pods_per_second:.0f}"),
            ("pods a second of that control plane", f"{measured.pods / measured.floor:.0f}"),
            (
                "**one process is the bound if it is faster, times**",
                f"**{measured.worth:.1f}**",
            ),
            ("share of the CPU that stays with placement, 500 nodes", f"{serial:.0%}"),
            ("so that the speed-up by any number of ranges is below", f"{1 / serial:.1f}"),
            *_searches(measured),
            ("memory of a process without pods, MiB", f"{measured.base_mib:.0f}"),
            ("memory for each pod, KiB", f"{measured.kib_per_pod:.1f}"),
            (f"memory for {MANY:,} pods, extrapolated, MiB", f"{measured.memory(MANY):,.0f}"),
            ("calls for each pod, today", f"{model.calls_per_pod(measured, placed_apart=False):.2f}"),
            ("with placement in another process", f"{model.calls_per_pod(measured, placed_apart=True):.2f}"),
        ],
    )


def _searches(measured: Measured) -> list[tuple[str, str]]:
    """The search for one gang on the sizes of clusters that were measured."""
    return [
        (f"search for a gang of 10 pods on {nodes:,} nodes, ms", f"{measured.search[nodes] * 1000:.1f}")
        for nodes in SEARCHED_NODES
        if nodes in measured.search
    ]


def _spread() -> str:
    rows = []
    for label, style, cut in _CUTS:
        found = [model.spread(style, cut, NAMESPACES, count, seeds=SEEDS) for count in COUNTS]
        rows.append((label, *(f"{each.median:.1f} ({each.worst:.1f})" for each in found)))
    return _table((f"{NAMESPACES} namespaces", *(f"{count} ranges" for count in COUNTS)), rows)


def _speed(measured: Measured) -> str:
    spreads = [model.spread(Names.NUMBERED, model.cut_by_load, NAMESPACES, n, seeds=SEEDS) for n in COUNTS]
    rows = []
    for faster in FASTER:
        times = [model.seconds_to_ready(measured, faster, each.median) for each in spreads]
        one = model.seconds_to_ready(measured, faster, None)
        rows.append((str(faster), f"{one:.1f}", *(f"{each:.1f}" for each in times)))
    return _table(("control plane, times as fast", "one process", *(f"{n} ranges" for n in COUNTS)), rows)


def _watches(measured: Measured) -> str:
    rows = []
    for count in (1, *COUNTS):
        sides = [model.traffic(measured, PODS, count, server_side=side) for side in (True, False)]
        events = (f"{each.events:,.0f}" for each in sides)
        sizes = (f"{each.mib:,.0f}" for each in sides)
        cpu = (f"{each.cpu:.1f}" for each in sides)
        rows.append((str(count), *events, *sizes, *cpu, f"{sides[0].range_mib:.0f}"))
    both = [f"{what}, {where}" for what in ("events", "MiB", "CPU s") for where in ("server", "client")]
    return _table(("ranges", *both, "MiB of a process"), rows)


def _takeover(measured: Measured) -> str:
    lease = model.Lease(timing.LEASE_DURATION, timing.LEASE_RETRY_PERIOD)
    rows = []
    for count in (1, *COUNTS):
        found = model.takeover(measured, lease, PODS, count, seed=0, crashes=CRASHES)
        pauses = (f"{found.mean_pause:.1f}", f"{found.longest_pause:.1f}")
        rows.append(
            (str(count), f"{found.share:.1%}", *pauses, f"{found.objects:,.0f}", f"{found.listing:.2f}")
        )
    heads = (
        "ranges",
        "pods not reconciled",
        "pause, mean s",
        "longest s",
        "objects listed",
        "decoding, CPU s",
    )
    return _table(heads, rows)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
