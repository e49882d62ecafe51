"""Prints the tables, and merges measurements into a file of results: a campaign can be run in parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.core.limits import Limit
from bench.growth.limits import limits
from bench.growth.progress import rounded
from bench.growth.scale import Scale

RESULTS = Path(__file__).parents[1] / "results" / "growth.json"
_COLUMNS = {
    "created": "created", "ready": "ready", "reported": "last call", "deleted": "deleted",
    "calls_per_pod": "calls/pod", "cpu": "CPU, s", "cpu_ms_per_pod": "CPU/pod, ms", "rss_mib": "MiB",
}  # fmt: skip
Result = dict[str, Any]


def results_file(scale: Scale, out: Path | None) -> Path | None:
    """The file that measurements are merged into; None: no file. Raises ValueError where a trial would
    replace results of the full scale."""
    if scale == Scale():
        return out or RESULTS
    if out and out.resolve() == RESULTS.resolve():
        raise ValueError(f"{out} has only results of the full sizes: choose another file for a trial")
    return out


def kept(found: dict[str, Result]) -> bool:
    return all(limit.budget.kept for name, result in found.items() for limit in limits(name, result))


def show(name: str, result: Result) -> None:
    """The figures of one measurement, and its limits."""
    console = Console(width=120)
    table = Table("limit", "first or floor", "ours", "measured", "at most", "", box=None)
    for limit in limits(name, result):
        table.add_row(*_row(limit))
    for part in (_figures(name, result), table):
        if part.row_count:
            console.print(part)
            console.print()


def _figures(name: str, result: Result) -> Table:
    if "sizes" in result:
        return _runs(f"gangs of {result['pods_each']}", result["sizes"])
    if "floor" in result:
        return _runs(name, [result])
    table = Table(name.replace("_", " "), "", box=None)
    for key, value in rounded(result).items():
        if isinstance(value, int | float):
            table.add_row(key.replace("_", " "), f"{value:,}")
        elif isinstance(value, dict) and key not in ("environment", "by_call"):
            numbers = {what: figure for what, figure in value.items() if isinstance(figure, int | float)}
            text = ", ".join(f"{what.replace('_', ' ')} {figure}" for what, figure in numbers.items())
            table.add_row(key.replace("_", " "), text)
    return table


def _runs(title: str, rows: list[Result]) -> Table:
    """Floor and operator of each size, in lines below each other."""
    table = Table(title, "pods", *_COLUMNS.values(), box=None)
    for row in rows:
        for run, label in (("floor", "contract floor"), ("ours", "operator")):
            found = row[run]
            cells = (f"{found[key]:.2f}" if key in found else "" for key in _COLUMNS)
            table.add_row(label, f"{row['pods']:,}", *cells)
    return table


def _row(limit: Limit) -> tuple[str, ...]:
    floor = f"{limit.floor:.2f}" if limit.floor is not None else ""
    mark = "[green]kept" if limit.budget.kept else "[red]missed"
    return limit.what, floor, f"{limit.ours:.2f}", f"{limit.measured:.2f}", f"{limit.at_most:.2f}", mark


def merge(name: str, result: Result, file: Path) -> None:
    """Replace one measurement in the file, with its limits and whether they are kept; others stay."""
    found = json.loads(file.read_text()) if file.exists() else {}
    found[name] = rounded(
        {**result, "limits": {each.what: _described(each) for each in limits(name, result)}}
    )
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=2) + "\n")


def _described(limit: Limit) -> Result:
    return {
        "floor": limit.floor, "ours": limit.ours, "measured": limit.measured, "at_most": limit.at_most,
        "kept": limit.budget.kept,
    }  # fmt: skip
