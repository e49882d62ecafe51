"""Prints the tables, checks the budgets, and writes bench/results/placement.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.budget import Budget

RESULTS = Path(__file__).parents[1] / "results" / "placement.json"
BAR = 40
Result = dict[str, Any]


def budgets(result: Result) -> list[Budget]:
    """Seconds of one core: until an answer, on 5,000 nodes, and of the longest round."""
    speed, most = result["speed"], result["rounds"][-1]
    return [
        Budget("1,000 pods, p99, s", speed["1000 pods"]["p99"], 1.0),
        Budget("10 pods, p99, s", speed["10 pods"]["p99"], 0.02),
        Budget(f"{most['gangs']} gangs, longest round, s", max(most["seconds"].values()), 1.5),
    ]


def kept(result: Result) -> bool:
    return all(budget.kept for budget in budgets(result))


def show(result: Result) -> None:
    console = Console()
    table = Table("budget", "measured", "at most", "", box=None)
    for budget in budgets(result):
        mark = "[green]kept" if budget.kept else "[red]broken"
        table.add_row(budget.what, f"{budget.is_:.4f}", f"{budget.at_most:.2f}", mark)
    for part in (
        table,
        _answers(result["speed"]),
        _growth(result["speed"]["growth"]),
        _rounds(result["rounds"]),
        _quality(result["quality"]),
    ):
        console.print(part)
        console.print()


def _answers(speed: Result) -> Table:
    table = Table(
        "5,000 nodes", "p50, ms", "p99, ms", "prepare, ms", "update a node, µs", "answers", box=None
    )
    for name in ("1000 pods", "10 pods"):
        row = speed[name]
        times = (f"{row[what] * 1000:.1f}" for what in ("p50", "p99", "prepare"))
        answers = ", ".join(f"{count} {answer}" for answer, count in row["answers"].items())
        table.add_row(name, *times, f"{row['update_a_node'] * 1e6:.0f}", answers)
    return table


def _growth(rows: list[Result]) -> Table:
    longest = max(row["1000 pods"]["p50"] for row in rows)
    table = Table("nodes", "10 pods, ms", "1,000 pods, ms", "", box=None)
    for row in rows:
        small, large = row["10 pods"]["p50"], row["1000 pods"]["p50"]
        bar = "█" * max(1, round(BAR * large / longest))
        table.add_row(f"{row['nodes']:,}", f"{small * 1000:.1f}", f"{large * 1000:.0f}", bar)
    return table


def _rounds(rows: list[Result]) -> Table:
    rounds = list(rows[0]["seconds"])
    table = Table("gangs on 500 nodes", *(f"{each.replace('_', ' ')}, ms" for each in rounds), box=None)
    for row in rows:
        table.add_row(str(row["gangs"]), *(f"{row['seconds'][each] * 1000:.0f}" for each in rounds))
    return table


def _quality(quality: Result) -> Table:
    heads = ("accepted", "share in best domain", "whole racks left", "64-GPU slots left")
    table = Table("2,000 arrivals", *heads, box=None)
    for name, row in quality.items():
        left = (f"{row[what]:.1f}" for what in ("whole_racks_left", "slots_of_64_gpus_left"))
        table.add_row(name, f"{row['accepted']:.0f}", f"{row['share_in_best_domain']:.3f}", *left)
    return table


def write(result: Result) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.3g}"))
    RESULTS.write_text(json.dumps(rounded, indent=2) + "\n")
