"""Explains objects of a board in a thread of its own: the search for nodes may take seconds, in which the
server must answer others."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from grove import timing
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cluster_state.model import ClusterState, UnreadKind
from grove.dashboard.board import Board
from grove.explanation.explain import Explainer, Preparation
from grove.explanation.model import Explanation

T = TypeVar("T")


class Explained(Struct, frozen=True):
    """What is known about an object, before it is reduced to what a viewer may see."""

    explanation: Explanation
    state: ClusterState
    """With the names of objects that were skipped."""
    unplanned: tuple[UnreadKind, ...]


class Explainers:
    """Explains the objects of one board, one after another. The work that all explanations of one state have
    in common is done once."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._state: ClusterState | None = None
        self._explainer: Explainer | None = None
        self._found: dict[tuple[str, str], Explained] = {}
        self._work: set[asyncio.Task[Explained]] = set()
        self._forgetting: asyncio.TimerHandle | None = None

    async def explain(self, board: Board, written: str, namespace: str) -> Explained:
        """Explain `kind/name`. Raises KubeError: UnknownObject, ConfigError if sets cannot be read."""
        await self._turn.acquire()  # a user who does not wait any longer gives up their place here
        work = asyncio.create_task(self._in_turn(board, written, namespace))
        self._work.add(work)
        work.add_done_callback(self._finish)
        # A thread cannot be stopped: it keeps its turn, also if the user does not wait any longer.
        return await asyncio.shield(work)

    async def _in_turn(self, board: Board, written: str, namespace: str) -> Explained:
        self._keep()
        try:
            return await self._found_or_explained(await board.state(), written, namespace)
        finally:
            self._forget_later()

    async def _found_or_explained(self, state: ClusterState, written: str, namespace: str) -> Explained:
        if state is not self._state:
            self.forget()
            self._state = state
        key = written, namespace
        if (known := self._found.get(key)) is not None:
            return known
        if len(self._found) >= timing.EXPLANATIONS_KEPT:
            del self._found[next(iter(self._found))]
        found = self._found[key] = await _in_thread(lambda: self._explain(state, written, namespace))
        return found

    def _finish(self, work: asyncio.Task[Explained]) -> None:
        self._turn.release()  # also of work that was cancelled before it began
        self._work.discard(work)
        if not work.cancelled():
            work.exception()  # its caller has it, unless the user does not wait any longer

    def _explain(self, state: ClusterState, written: str, namespace: str) -> Explained:
        """Runs in the thread; the lock keeps others out."""
        with _gc_paused():
            if self._explainer is None:
                self._explainer = Preparation(OPERATOR_LEASE).explainer(state)
            explainer = self._explainer
            found = explainer.explain(written, namespace)
            return Explained(found, explainer.state, explainer.unplanned())

    def forget(self) -> None:
        """Free the memory."""
        known = self._explainer is not None
        self._state, self._explainer = None, None
        self._found.clear()
        if known:
            gc.collect()  # now, and once: the next one takes as much memory again

    def _keep(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()

    def _forget_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._forgetting = loop.call_later(timing.EXPLAINER_KEPT, self.forget)


_of_boards: WeakKeyDictionary[Board, Explainers] = WeakKeyDictionary()


def explainers_of(board: Board) -> Explainers:
    """Those of a board, as long as the board is used."""
    found = _of_boards.get(board)
    if found is None:
        found = _of_boards[board] = Explainers()
    return found


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Keep the garbage collector from running: it stops all threads, several times and for a second each,
    while the objects of a large cluster are made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


async def _in_thread(compute: Callable[[], T]) -> T:
    """Compute in a thread with an event loop of its own, which the caches of the operator need."""

    async def run() -> T:
        return compute()

    return await asyncio.to_thread(lambda: asyncio.run(run()))
