"""The cost of a process: CPU and memory from the kernel, API calls from the audit log."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

OPERATOR = "bench-operator"
_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """CPU seconds so far, and peak memory."""

    cpu: float
    rss_mib: float


class ProcessStat(NamedTuple):
    """One line of /proc/*/stat; CPU time with that of its exited children."""

    pid: int
    parent: int
    session: int
    cpu: float


def cost(pid: int) -> Cost:
    """Of a process and of those that it started. The peaks of several processes are added, so that memory
    which they share counts for each of them."""
    found = process_tree(pid, _processes())
    return Cost(sum(each.cpu for each in found), sum(_peak_mib(each.pid) for each in found))


def process_tree(pid: int, processes: Iterable[ProcessStat]) -> list[ProcessStat]:
    """The process and its descendants. If it leads a session, also the members of that session: they stay in
    it when their parent exits. Raises ProcessLookupError if the process does not exist."""
    left = {each.pid: each for each in processes}
    if pid not in left:
        raise ProcessLookupError(f"no process {pid}")
    found = {pid: left.pop(pid)}
    while more := [each for each in left.values() if each.parent in found or each.session == pid]:
        found |= {each.pid: left.pop(each.pid) for each in more}
    return list(found.values())


def _processes() -> Iterator[ProcessStat]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has exited
                # After the command's name, which may contain spaces: state, ppid, pgrp, session, ...; the
                # 12th to 15th are user and system time, of itself and of its children that exited.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks = sum(map(int, fields[11:15]))
                yield ProcessStat(int(folder.name), int(fields[1]), int(fields[3]), ticks / _TICKS)


def _peak_mib(pid: int) -> float:
    """0 if the process has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    peaks = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(next(peaks, 0)) / 1024


class Audit:
    """Counts the calls of one user since the previous count, without watches and leases. Not by user agent:
    operators choose theirs, and several clients of one operator may differ."""

    def __init__(self, log: Path, user: str = OPERATOR) -> None:
        self._log, self._user, self._read = log, user, 0

    def calls(self) -> Counter[str]:
        """Calls since the previous count, as `verb resource`."""
        with self._log.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole.encode())
        return Counter(filter(None, (call(line, self._user) for line in whole.splitlines())))


def call(line: str, user: str) -> str:
    """`verb resource` of a line of the audit log; empty if another user sent the request, or if it does not
    count. The user is the one of the credentials, or the one that they impersonate."""
    event = json.loads(line)
    about = event.get("objectRef", {})
    users = {event.get(key, {}).get("username") for key in ("user", "impersonatedUser")}
    if user not in users or event["verb"] == "watch" or about.get("resource") == "leases":
        return ""
    parts = (about.get("resource"), about.get("subresource"))
    return f"{event['verb']} {'/'.join(part for part in parts if part)}"
