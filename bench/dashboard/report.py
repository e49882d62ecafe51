"""Prints the table, checks the budgets, and writes bench/results/dashboard.json."""

from __future__ import annotations

import datetime
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.budget import Budget, budget_table
from bench.dashboard.page_timing import Frames, PageTiming

RESULTS = Path(__file__).parents[1] / "results" / "dashboard.json"
MB = 1_000_000


class Result(NamedTuple):
    """All that was measured."""

    browser: str
    picture_bytes: int
    picture_bytes_gzip: int
    server_ready: float
    server_memory: float
    page: PageTiming
    changes: dict[str, Frames]
    drawing: dict[str, Any]


def budgets(result: Result) -> list[Budget]:
    """A page is fast if it shows something within a second and the map within three; people notice frames of
    50 ms."""
    return [
        Budget("picture, compressed, MB", result.picture_bytes_gzip / MB, 1.0),
        Budget("server ready, s", result.server_ready, 10.0),
        Budget("first contentful paint, s", result.page.paint, 1.0),
        Budget("map drawn, s", result.page.drawn, 3.0),
        Budget("scroll, p95 of frames, ms", result.page.scroll.p95, 50.0),
        *(
            Budget(f"10 deltas a second, {name}, p95 of frames, ms", found.p95, 50.0)
            for name, found in result.changes.items()
        ),
        Budget("memory of the page, MiB", result.page.memory, 512.0),
    ]


def kept(result: Result) -> bool:
    return all(budget.kept for budget in budgets(result))


def show(result: Result) -> None:
    console = Console()
    console.print(budget_table("5,000 nodes, 20,000 pods", budgets(result), digits=2))
    console.print()
    drawing = Table("40,000 cells", "canvas, ms", "SVG, ms", "SVG is", box=None)
    for step, found in result.drawing.items():
        ratio = f"{found['svg_times_canvas']:.1f} times"
        drawing.add_row(step, f"{found['canvas']:.1f}", f"{found['svg']:.1f}", ratio)
    console.print(drawing)


def write(result: Result) -> None:
    found = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"python": platform.python_version(), "cpus": os.cpu_count(), "system": platform.system()},
        "packages": {
            "chromium": result.browser,
            **{each: version(each) for each in ("aiohttp", "playwright")},
        },
        "picture": {"bytes": result.picture_bytes, "gzip": result.picture_bytes_gzip},
        "server": {"ready_seconds": result.server_ready, "memory_mib": result.server_memory},
        "page": {**result.page._asdict(), "scroll": result.page.scroll._asdict()},
        "frames_at_10_deltas_a_second": {name: each._asdict() for name, each in result.changes.items()},
        "drawing_40000_cells_ms": result.drawing,
    }
    RESULTS.write_text(json.dumps(_rounded(found), indent=2) + "\n")


def _rounded(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _rounded(value) for key, value in found.items()}
    return float(f"{found:.3g}") if isinstance(found, float) else found
