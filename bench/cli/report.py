"""Prints the table, checks the budgets, and writes bench/results/cli.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.budget import Budget, budget_table
from bench.cli.command_timing import Timing

RESULTS = Path(__file__).parents[1] / "results" / "cli.json"
ON_CLUSTER = ("get", "tree", "topology", "explain", "__complete")
Result = Mapping[str, Timing]


def budgets(result: Result) -> list[Budget]:
    """Of `grove --help` the CPU time; of `grove plan` all of it; of the others until the first output."""
    return [
        Budget("help, CPU, s", result["help"].cpu, 0.15),
        *(Budget(f"{name}, first output, s", result[name].first, 0.4) for name in ON_CLUSTER),
        Budget("plan of 1,000 pods on 5,000 nodes, s", result["plan"].total, 2.0),
    ]


def kept(result: Result) -> bool:
    return all(budget.kept for budget in budgets(result))


def show(result: Result) -> None:
    console = Console()
    console.print(budget_table("budget", budgets(result)))
    console.print()
    times = Table("500 nodes, 5,000 pods", "first output, ms", "end, ms", "CPU, ms", box=None)
    for name in ON_CLUSTER:
        times.add_row(f"grove {name}", *(f"{seconds * 1000:.0f}" for seconds in result[name]))
    console.print(times)


def write(result: Result) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    rounded = {
        name: {key: float(f"{seconds:.3g}") for key, seconds in found._asdict().items()}
        for name, found in result.items()
    }
    RESULTS.write_text(json.dumps(rounded, indent=2) + "\n")
