"""Checks the budgets, prints the tables, and writes bench/results/kube.json."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.kube.measure import NAMES, OTHERS

RESULTS = Path(__file__).parent.parent / "results" / "kube.json"


class Budget(msgspec.Struct):
    """One budget: the measured value, the limit, and whether it is kept."""

    promise: str
    measured: float
    limit: float
    at_least: bool = False

    @property
    def kept(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def budgets(creates: dict[str, Any], decoding: dict[str, Any], watching: dict[str, Any]) -> list[Budget]:
    """The budgets of the Kubernetes client."""
    ours = creates["ours"]["times_bare"]
    found = [Budget("create: CPU against the bare loop", ours, 1.25)]
    for other in OTHERS:
        label = NAMES[other]
        found.append(Budget(f"create: CPU against {label}", ours / creates[other]["times_bare"], 1 / 3))
        ratio = decoding[other]["cpu"] / decoding["ours"]["cpu"]
        found.append(Budget(f"decode: times less CPU than {label}", ratio, 50, at_least=True))
        memory = decoding[other]["bytes_per_pod"] / decoding["ours"]["bytes_per_pod"]
        found.append(Budget(f"memory: times less than {label}", memory, 15, at_least=True))
        rate = watching["ours"]["events_per_cpu_second"] / watching[other]["events_per_cpu_second"]
        found.append(Budget(f"watch: times the events of {label}", rate, 10, at_least=True))
    kib = decoding["ours"]["bytes_per_pod"] / 1024
    found.append(Budget("memory per cached pod, KiB", kib, 3.65))
    return found


def show(
    console: Console,
    creates: dict[str, Any],
    decoding: dict[str, Any],
    watching: dict[str, Any],
    kept: list[Budget],
) -> None:
    """Print two tables: measured values, and budgets."""
    table = Table(title="Cost of API calls")
    table.add_column("")
    for head in ("create\nus CPU/pod", "decode 5,000\nms CPU", "cached\nKiB/pod", "watch\nevents/s CPU"):
        table.add_column(head, justify="right")
    for name, label in NAMES.items():
        row = [f"{creates[name]['cpu'] * 1e6:.0f}"]
        if name in decoding:
            row += [f"{decoding[name]['cpu'] * 1e3:.1f}", f"{decoding[name]['bytes_per_pod'] / 1024:.2f}"]
            row += [f"{watching[name]['events_per_cpu_second']:,.0f}"]
        table.add_row(label, *row)
    console.print(table)
    promises = Table(title="Budgets")
    for head in ("promise", "measured", "limit", "kept"):
        promises.add_column(head)
    for budget in kept:
        sign = ">=" if budget.at_least else "<="
        limit = f"{sign} {budget.limit:.3g}"
        promises.add_row(
            budget.promise, f"{budget.measured:.3g}", limit, "yes" if budget.kept else "[red]no[/red]"
        )
    console.print(promises)


def write(
    creates: dict[str, Any], decoding: dict[str, Any], watching: dict[str, Any], kept: list[Budget]
) -> None:
    """Write the results."""
    packages = ("aiohttp", "msgspec", "kubernetes", "kubernetes-asyncio")
    results = {
        "machine": {"python": platform.python_version(), "cpus": os.cpu_count(), "system": platform.system()},
        "packages": {name: version(name) for name in packages},
        "create_seconds_per_pod": {NAMES[name]: cost for name, cost in creates.items()},
        "decode_5000_pods": {NAMES[name]: cost for name, cost in decoding.items()},
        "watch": {NAMES[name]: cost for name, cost in watching.items()},
        "budgets": [
            {"promise": one.promise, "measured": one.measured, "limit": one.limit, "kept": one.kept}
            for one in kept
        ],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
