"""Where and when a run was measured: results of different machines or versions do not compare."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("aiohttp", "msgspec")


def environment(kubernetes: str) -> dict[str, Any]:
    """Machine, versions and date, for the results."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": {
            "processor": _first_value("/proc/cpuinfo", "model name"),
            "cpus": os.cpu_count(),
            "memory": _first_value("/proc/meminfo", "MemTotal"),
            "system": f"{platform.system()} {platform.release()}",
            "load": [round(load, 2) for load in os.getloadavg()],
        },
        "versions": {
            "kubernetes": kubernetes,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
    }


def _first_value(path: str, key: str) -> str:
    """The value of the first line `key : value` of a file of the kernel; empty if there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
