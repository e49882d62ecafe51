"""Prints the tables, checks the budgets, and writes bench/results/core.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.budget import Budget

NODES = 100
RESULTS = Path(__file__).parents[1] / "results" / "core.json"
Result = dict[str, Any]


def budgets(result: Result) -> list[Budget]:
    """The budgets: ratios within one run, and counts."""
    ours, floor, pods = result["ours"], result["floor"], result["pod_floor"]
    return [
        Budget("created / contract floor", ours["created"] / floor["created"], 1.25),
        Budget("ready / contract floor", ours["ready"] / floor["ready"], 1.25),
        Budget("half scaled in / bare delete", ours["deleted_half"] / pods["deleted_half"], 2.0),
        Budget("all deleted / pods deleted", ours["deleted"] / pods["deleted"], 2.0),
        Budget("API calls per pod", ours["calls"] / ours["pods"], 4.0),
        Budget("operator CPU, s", ours["cpu"], 5.0),
        Budget("operator memory, MiB", ours["rss_mib"], memory(ours["pods"], NODES)),
        Budget("API calls per minute at rest", ours["idle_calls"], 0),
        *_further(result),
    ]


def _further(result: Result) -> list[Budget]:
    grouped, small, large = result["grouped"], result["small"], result["large"]
    updated, recycled = result["updated"], result["recycled"]
    return [
        Budget("API calls per pod replaced by an update", updated["calls"] / updated["pods"], 11.0),
        Budget("API calls per restarted pod", recycled["calls"] / recycled["pods"], 8.0),
        Budget(
            "with groups: API calls / contract's", grouped["calls"] / grouped["contract_calls"], 4.0 / 3.5
        ),
        Budget("10 pods, apply to ready, s over the floor", small["ready"] - small["floor_ready"], 1.0),
        Budget("5000 pods: operator memory, MiB", large["rss_mib"], memory(large["pods"], NODES)),
        Budget("5000 pods: writes of a restart", large["restart_writes"], 0),
        Budget("5000 cliques deleted, s", large["deleted"], 120),
        *_beside_others(result["contended"], result["crowded"]),
    ]


def _beside_others(contended: Result, crowded: Result) -> list[Budget]:
    return [
        Budget("contended: API calls per pod", contended["calls"] / contended["pods"], 6.0),
        Budget(
            "5000 pods of others: operator memory, MiB",
            crowded["rss_mib"],
            memory(crowded["pods"], crowded["nodes"], crowded["foreign"]),
        ),
    ]


def memory(pods: int, nodes: int, foreign: int = 0) -> float:
    """MiB for pods of sets, nodes, and pods of others."""
    return 75 + (pods * 10 + nodes * 2 + foreign * 0.3) / 1024


def kept(result: Result) -> bool:
    return all(budget.kept for budget in budgets(result))


def show(result: Result) -> None:
    console = Console()
    times = Table("seconds", "created", "ready", "half deleted", "all deleted", box=None)
    for name, label in (("pod_floor", "pods only"), ("floor", "contract floor"), ("ours", "operator")):
        row = result[name]
        columns = ("created", "ready", "deleted_half", "deleted")
        times.add_row(label, *(f"{row[column]:.1f}" for column in columns))
    table = Table("budget", "measured", "at most", "", box=None)
    for budget in budgets(result):
        mark = "[green]kept" if budget.kept else "[red]broken"
        table.add_row(budget.what, f"{budget.is_:.2f}", f"{budget.at_most:.2f}", mark)
    calls = Table("calls", "", box=None)
    for call, count in result["ours"]["by_call"].items():
        calls.add_row(call, str(count))
    for part in (times, table, calls):
        console.print(part)


def write(result: Result) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda text: round(float(text), 2))
    RESULTS.write_text(json.dumps(rounded, indent=2) + "\n")
