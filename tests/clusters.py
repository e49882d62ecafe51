"""Clusters for tests: started on demand, stopped with the run, and if a run was killed, by the next one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from grove.local.build.binaries import Binaries
from grove.local.cluster import lifecycle
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.cluster.processes import start_time
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

REPORTER = ProgressReporter(Console(stderr=True))
_ROOT = Path(tempfile.gettempdir()) / f"grove-tests-{os.getuid()}"


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """For what the machine has only one of: tests run side by side, in processes of their own."""
    _ROOT.mkdir(exist_ok=True)
    with (_ROOT / what).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stop_leftovers() -> None:
    """Clusters of runs that can no longer stop them themselves."""
    with one_at_a_time("leftovers"):
        for run in _ROOT.glob("*-*"):
            pid, _, born = run.name.partition("-")
            if start_time(int(pid)) != born:
                for state in run.iterdir():
                    lifecycle.down(StateDir(state), delete=True)
                run.rmdir()


class Clusters:
    """Starts clusters of this run and remembers them."""

    def __init__(self, programs: Callable[[], Binaries]) -> None:
        self._programs = programs
        self._started: list[StateDir] = []

    def start_now(self, name: str, **settings: object) -> LocalCluster:
        """A cluster of this name, new or back again; without settings a small one."""
        state = self.state(name)
        if state not in self._started:
            self._started.append(state)
        small: dict[str, object] = {"nodes": 4, "gpus": 8, "shape": "1x1x1x4"}
        wanted = ClusterSettings(**{**small, **settings})  # type: ignore[arg-type]
        return lifecycle.up(state, wanted, self._programs, REPORTER)

    async def start(self, name: str, **settings: object) -> LocalCluster:
        """The same where an event loop runs."""
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
