"""Prints the tables, checks the limits, and writes bench/results/core.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.core.limits import Limit, limits
from bench.peer.comparison import comparison

RESULTS = Path(__file__).parents[1] / "results" / "core.json"
Result = dict[str, Any]
_RUNS = (("pod_floor", "pods only"), ("floor", "contract floor"), ("ours", "operator"))


def kept(result: Result) -> bool:
    return all(limit.budget.kept for limit in limits(result))


def show(result: Result) -> None:
    console = Console()
    columns = ("created", "ready", "deleted_half", "deleted", "cpu")
    times = Table("seconds", "created", "ready", "half deleted", "all deleted", "CPU", box=None)
    for name, label in _RUNS:
        if row := result.get(name):
            times.add_row(label, *(f"{row[column]:.1f}" if column in row else "" for column in columns))
    table = Table("limit", "floor", "ours", "measured", "at most", "", box=None)
    for limit in limits(result):
        table.add_row(*_row(limit))
    compared = [comparison(result)] if "peer" in result else []
    for part in (times, table, _calls(result), *compared):
        if part.row_count:
            console.print(part)


def _calls(result: Result) -> Table:
    """The calls by verb and resource, also those of the peer."""
    table, peer = Table("calls", "", box=None), result.get("peer", {})
    runs = {"ours": result.get("ours"), "updated": result.get("updated")}
    runs |= {"peer": peer.get("operator"), "peer updated": peer.get("updated")}
    for name, run in runs.items():
        for call, count in (run or {}).get("by_call", {}).items():
            table.add_row(f"{name}: {call}", str(count))
    return table


def _row(limit: Limit) -> tuple[str, ...]:
    floor = f"{limit.floor:.2f}" if limit.floor is not None else ""
    mark = "[green]kept" if limit.budget.kept else "[red]missed"
    return (
        limit.what,
        floor,
        f"{limit.ours:.2f}",
        f"{limit.measured:.2f}",
        f"{limit.at_most:.2f}",
        mark,
    )


def write(result: Result) -> None:
    """Write the results, with the limits and whether they are kept."""
    found = {
        limit.what: {
            "floor": limit.floor,
            "ours": limit.ours,
            "measured": limit.measured,
            "at_most": limit.at_most,
            "kept": limit.budget.kept,
        }
        for limit in limits(result)
    }
    RESULTS.parent.mkdir(exist_ok=True)
    text = json.dumps({"environment": result["environment"], "limits": found, **result})
    rounded = json.loads(text, parse_float=lambda number: round(float(number), 2))
    RESULTS.write_text(json.dumps(rounded, indent=2) + "\n")
