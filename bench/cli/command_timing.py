"""Runs a command, and measures when its first output comes, when it ends, and its CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import NamedTuple

GROVE = str(Path(sys.executable).with_name("grove"))
RUNS = 5
_ANSWERS = (0, 2, 3)
"""The exit codes of commands that answer: also that something does not fit, or cannot be known."""


class Timing(NamedTuple):
    """Seconds."""

    first: float
    total: float
    cpu: float


def run(*arguments: str, **variables: str) -> Timing:
    """The medians of several runs, after one that fills the caches of the disk."""
    found = [_once(arguments, variables) for _ in range(RUNS + 1)][1:]
    return Timing(*(median(column) for column in zip(*found, strict=True)))


def _once(arguments: tuple[str, ...], variables: dict[str, str]) -> Timing:
    before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        [GROVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        output = process.stdout.read1(1)
        first = time.perf_counter() - began
        process.stdout.read()
        problem = process.stderr.read().decode()
    total = time.perf_counter() - began
    if process.returncode not in _ANSWERS or not output:
        raise RuntimeError(f"grove {' '.join(arguments)} ended with {process.returncode}: {problem}")
    after = getrusage(RUSAGE_CHILDREN)
    return Timing(first, total, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
