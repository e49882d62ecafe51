"""`grove dashboard` on a snapshot file, and the same server with a cluster that changes, as processes."""

from __future__ import annotations

import gzip
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import NamedTuple

import psutil

GROVE = str(Path(sys.executable).with_name("grove"))
MIB = 2**20


class Served(NamedTuple):
    """A running server."""

    address: str
    seconds: float
    """From its start until it answered with the picture."""
    picture: bytes
    process: psutil.Process

    @property
    def compressed(self) -> int:
        """The bytes of the picture as a browser receives it."""
        return len(gzip.compress(self.picture, compresslevel=5))

    @property
    def memory(self) -> float:
        """Its resident memory, in MiB."""
        return float(self.process.memory_info().rss) / MIB


@contextmanager
def snapshot_dashboard(snapshot: Path) -> Iterator[Served]:
    """The command, as a user starts it."""
    with _served(GROVE, "dashboard", "--snapshot", str(snapshot), "--no-browser", "--port", "0") as found:
        yield found


@contextmanager
def changing_dashboard(snapshot: Path) -> Iterator[Served]:
    """The server of the command with a board on which pods come and go."""
    with _served(sys.executable, "-m", "bench.dashboard.changing_board", str(snapshot)) as found:
        yield found


@contextmanager
def _served(*command: str) -> Iterator[Served]:
    began = time.perf_counter()
    process = Popen(command, stdout=PIPE, text=True)
    try:
        address = _address(process)
        request = urllib.request.Request(f"{address}api/picture", headers={"Accept-Encoding": "identity"})
        with urllib.request.urlopen(request) as answer:
            picture = answer.read()
        yield Served(address, time.perf_counter() - began, picture, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()


def _address(process: Popen[str]) -> str:
    """The address that the command prints."""
    assert process.stdout is not None
    for line in process.stdout:
        for word in line.split():
            if word.startswith("http://"):
                return word.rstrip(".,")
    raise RuntimeError(f"the dashboard ended with {process.wait()}")
