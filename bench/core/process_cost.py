"""The cost of a process: CPU and memory from the kernel, API calls from the audit log."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

OPERATOR = "bench-operator"
_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """CPU seconds so far, and peak memory."""

    cpu: float
    rss_mib: float


def cost(pid: int) -> Cost:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return Cost((int(fields[11]) + int(fields[12])) / _TICKS, int(peak.split()[1]) / 1024)


class Audit:
    """Counts the operator's calls since the previous count, without watches and leases."""

    def __init__(self, log: Path) -> None:
        self._log, self._read = log, 0

    def calls(self) -> Counter[str]:
        """Calls since the previous count, as `verb resource`."""
        with self._log.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole.encode())
        return Counter(filter(None, map(_call, whole.splitlines())))


def _call(line: str) -> str:
    event = json.loads(line)
    about = event.get("objectRef", {})
    counted = event.get("impersonatedUser", {}).get("username") == OPERATOR and event["verb"] != "watch"
    if not counted or about.get("resource") == "leases":
        return ""
    parts = (about.get("resource"), about.get("subresource"))
    return f"{event['verb']} {'/'.join(part for part in parts if part)}"
