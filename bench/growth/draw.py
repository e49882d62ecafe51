"""Draws the growth of costs: `python -m bench.growth.draw` reads bench/results/growth.json and writes
docs/growth.svg."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.growth.chart import Curve, Panel, picture
from bench.growth.report import RESULTS

PICTURE = Path(__file__).parents[2] / "docs" / "growth.svg"
SHAPES = {"one_pod_gangs": "gangs of one pod", "gangs_of_8": "gangs of eight pods"}
# Floors first: points of the operator lie on the open ones of the floor.
_PANELS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("API calls per pod", "calls_per_pod", ("floor", "ours")),
    ("CPU per pod, ms", "cpu_ms_per_pod", ("floor", "ours")),
    ("Peak memory of the operator, MiB", "rss_mib", ("ours",)),
    ("Seconds until all pods are ready", "ready", ("floor", "ours")),
)


def svg(results: str) -> str:
    """The picture of a file of results. Shapes that were not measured are left out; empty without any."""
    found = json.loads(results)
    shapes = {label: found[name]["sizes"] for name, label in SHAPES.items() if name in found}
    if not shapes:
        return ""
    panels = [
        Panel(
            title,
            tuple(
                Curve(label, run == "floor", tuple((row["pods"], row[run][key]) for row in rows))
                for label, rows in shapes.items()
                for run in runs
            ),
        )
        for title, key, runs in _PANELS
    ]
    sizes = [row["pods"] for rows in shapes.values() for row in rows]
    title = f"Costs of the operator from {min(sizes):,} to {max(sizes):,} pods"
    return picture(title, _description(shapes), panels)


def _description(shapes: dict[str, list[dict[str, Any]]]) -> str:
    """The first and the last size in words, for readers who do not see the curves."""
    parts = []
    for label, rows in shapes.items():
        for row in (rows[0], rows[-1]):
            ours, floor = row["ours"], row["floor"]
            parts.append(
                f"{label}, {row['pods']:,} pods: {ours['calls_per_pod']:.2f} calls and "
                f"{ours['cpu_ms_per_pod']:.1f} ms of CPU per pod, {ours['rss_mib']:.0f} MiB, ready after "
                f"{ours['ready']:.0f} s (floor {floor['ready']:.0f} s)."
            )
    return " ".join(parts)


def draw(results: Path = RESULTS, picture: Path = PICTURE) -> None:
    if text := svg(results.read_text()):
        picture.write_text(text)


if __name__ == "__main__":
    draw(*map(Path, sys.argv[1:]))
