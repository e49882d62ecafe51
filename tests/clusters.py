"""Clusters for tests: started on demand, stopped after the run, or by the next run if it was killed."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

from grove.local.build import binaries
from grove.local.build.binaries import Binaries
from grove.local.build.versions import default_minor
from grove.local.cluster import lifecycle
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.cluster.processes import start_time
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

REPORTER = ProgressReporter(Console(stderr=True))
_ROOT = Path(tempfile.gettempdir()) / f"grove-tests-{os.getuid()}"


@cache
def programs(minor: str = default_minor()) -> Binaries:
    """The programs of the control plane, found or built once; by default of the version under test."""
    return binaries.find(minor, REPORTER)


def needs_kubernetes(*minors: str) -> pytest.MarkDecorator:
    """Skips a test of other versions than the one under test where they are not built: that takes ten minutes
    of all cores, and the tests beside it would wait."""
    missing = [minor for minor in minors if not binaries.available(minor)]
    reason = (
        f"Kubernetes {', '.join(missing)} is not on this machine: grove cluster prepare --kubernetes VERSION"
    )
    return pytest.mark.skipif(bool(missing), reason=reason)


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """A lock for resources that the machine has once: tests run in parallel processes."""
    _ROOT.mkdir(exist_ok=True)
    with (_ROOT / what).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stop_leftovers() -> None:
    """Stop the clusters of runs that were killed."""
    with one_at_a_time("leftovers"):
        for run in _ROOT.glob("*-*"):
            pid, _, born = run.name.partition("-")
            if start_time(int(pid)) != born:
                for state in run.iterdir():
                    lifecycle.down(StateDir(state), delete=True)
                run.rmdir()


class Clusters:
    """Starts clusters of this run and keeps track of them."""

    def __init__(self) -> None:
        self._started: list[StateDir] = []

    def start_now(self, name: str, **settings: object) -> LocalCluster:
        """Start a cluster of this name, new or stopped before; without settings a small one."""
        state = self.state(name)
        if state not in self._started:
            self._started.append(state)
        small: dict[str, object] = {"kubernetes": default_minor(), "nodes": 4, "gpus": 8, "shape": "1x1x1x4"}
        wanted = ClusterSettings(**{**small, **settings})  # type: ignore[arg-type]
        return lifecycle.up(state, wanted, programs, REPORTER)

    async def start(self, name: str, **settings: object) -> LocalCluster:
        """The same inside of an event loop."""
        return await asyncio.to_thread(self.start_now, name, **settings)

    @staticmethod
    def state(name: str) -> StateDir:
        pid = os.getpid()
        return StateDir(_ROOT / f"{pid}-{start_time(pid)}" / name)

    def stop_all(self) -> None:
        for state in self._started:
            lifecycle.down(state, delete=True)
            if not any(state.root.parent.iterdir()):
                state.root.parent.rmdir()
        self._started.clear()
