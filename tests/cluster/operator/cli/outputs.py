"""Runs commands, and compares what they print with files that reviewers read."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.shared import ROOT
from tests.terminal import GROVE

SNAPSHOTS = Path(__file__).with_name("snapshots")
UPDATE = "GROVE_UPDATE_SNAPSHOTS"
"""Variable: write the files instead of comparing them."""
_AT_ONCE = asyncio.Semaphore(2)
_PATTERNS = (
    (r"\bz\d-b\d-r\d-h\d\b", "NODE"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"(econds(?:Ago)?:) \d+", r"\1 0"),
    (r"\b\d+[smhd]\b", "AGE"),
    (r"[█▒░]+", "BAR"),
    (r"\d+/\d+ free", "COUNT free"),
    (r"on \d+ nodes?", "on COUNT nodes"),
    (r"nodes: \d+$", "nodes: COUNT"),
    (r"(\d/\d|-)  \d+  -  -  AGE", r"\1  COUNT  -  -  AGE"),
    (r" +$", ""),
)


async def grove(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command that has ended."""
    variables = {**os.environ, **environment}
    async with _AT_ONCE:
        return await asyncio.to_thread(
            subprocess.run, [GROVE, *arguments], capture_output=True, text=True, check=False, env=variables
        )


async def batch(lines: Sequence[Sequence[str]]) -> list[tuple[int, str, str]]:
    """The exit codes, outputs and errors of commands."""
    command = [sys.executable, "-m", "tests.cluster.operator.cli.batch"]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    out, _ = await process.communicate(json.dumps(lines).encode())
    return [(code, text, errors) for code, text, errors in json.loads(out)]


def normalized(text: str, namespace: str, pods: Iterable[str]) -> str:
    """The text without what differs from run to run: names, nodes, times, counts of the shared cluster."""
    for pod in pods:
        text = text.replace(pod, f"{pod.rpartition('-')[0]}-xxxxxxxx")
    text = re.sub(rf"\b{re.escape(namespace)}\b", "NAMESPACE", text)
    text = "\n".join(_columns(line) for line in text.splitlines())
    for pattern, shown in _PATTERNS:
        text = re.sub(pattern, shown, text, flags=re.MULTILINE)
    return f"{text}\n"


def _columns(line: str) -> str:
    """Columns are as wide as their texts; the lines of a tree are indented."""
    return line if any(guide in line for guide in "│├└") else re.sub(r"(?<=\S) {3,}(?=\S)", "  ", line)


def compare(name: str, text: str) -> None:
    """Fail if a text is not that of its file."""
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get(UPDATE):
        file.write_text(text)
    assert file.read_text() == text, f"{file.name} differs: review it, and write it with {UPDATE}=1"
