"""Shows a set while it changes, for `grove demo`: a live tree on a terminal, else one line per change."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from grove import timing
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cli.printable import printable
from grove.cli.views.set_view import SetObjects, SetView, set_views
from grove.cli.views.text_layout import coloured, lines, tree
from grove.kube.cache.cache import Cache
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from grove.operator.caches.resources import resource_of

KINDS = (PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang)


class Screen(Protocol):
    """The output that a set is shown on."""

    def show(self, view: SetView) -> None: ...


class SetWatcher:
    """The sets of a namespace, kept up to date by watches."""

    def __init__(self, namespace: str) -> None:
        ours: list[Cache[Any]] = [
            Cache(resource_of(kind.KIND), kind, namespace=namespace, labels=labels.MANAGED_BY_OPERATOR)
            for kind in KINDS[1:]
        ]
        sets: Cache[Any] = Cache(resource_of(PodCliqueSet.KIND), PodCliqueSet, namespace=namespace)
        self._caches = [sets, *ours, Cache(PODS, Pod, namespace=namespace, labels=labels.MANAGED_BY_OPERATOR)]
        self._changed = asyncio.Event()
        for cache in self._caches:
            cache.subscribe(lambda _old, _new: self._changed.set())

    @asynccontextmanager
    async def on(self, client: Client) -> AsyncIterator[None]:
        """Watch until the block is left. Waits for kinds that are not served yet."""
        crd_watch = CrdWatch()
        runs = [Reflector(client, cache, crd_watch=crd_watch).run() for cache in self._caches]
        tasks = [asyncio.create_task(run) for run in (crd_watch.run(client), *runs)]
        try:
            for cache in self._caches:
                await cache.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def view(self, name: str) -> SetView | None:
        """A set as the caches hold it; None if it does not exist."""
        seen = set_views(SetObjects(*(tuple(cache) for cache in self._caches)), time.time())
        return next((one for one in seen if one.name == name), None)

    def gone(self, name: str) -> bool:
        """Whether neither the set nor any object of it exists."""
        everything = (found.metadata for cache in self._caches for found in cache)
        return not any(name in (meta.name, meta.labels.get(labels.PART_OF)) for meta in everything)

    async def until(self, done: Callable[[], bool], name: str, screen: Screen) -> None:
        """Show a set after each watch event, until `done` holds."""
        while True:
            self._changed.clear()
            if (view := self.view(name)) is not None:
                screen.show(view)
            if done():
                return
            await self._changed.wait()
            await asyncio.sleep(timing.SCREEN_INTERVAL)


@contextmanager
def screen(console: Console, known: SetView | None = None) -> Iterator[Screen]:
    """A live tree on a terminal, elsewhere one line for each change since `known`."""
    if not console.is_terminal:
        yield LineScreen(known)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _LiveScreen(live, console)


class _LiveScreen:
    def __init__(self, live: Live, console: Console) -> None:
        self._live, self._console = live, console

    def show(self, view: SetView) -> None:
        self._live.update(live_frame(view, self._console.width, self._console.height), refresh=True)


def live_frame(view: SetView, width: int, height: int) -> Group:
    """The set with its pods if they fit on the terminal, else down to its cliques."""
    rows = list(lines(tree(view), width))
    if len(rows) > height - 2:
        rows = list(lines(tree(view, pods=False), width))
    return Group(*(coloured(row) for row in rows), Text(summary(view), style="dim", no_wrap=True))


def summary(view: SetView) -> str:
    """The number of pods in each state."""
    states: dict[str, int] = {}
    for pod in view.pods:
        states[pod.state] = states.get(pod.state, 0) + 1
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{len(view.pods)} pods: {counted}" if counted else "no pods yet"


class LineScreen:
    """Prints one line per change."""

    def __init__(self, known: SetView | None = None) -> None:
        self._before = known

    def show(self, view: SetView) -> None:
        for line in changes(self._before, view):
            sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()
        self._before = view


def changes(before: SetView | None, after: SetView) -> Iterator[str]:
    """One line per gang with a new phase, per deleted gang, and per clique whose counts changed."""
    phases = {gang.name: gang.phase for gang in before.gangs} if before else {}
    counts = {one.name: (one.ready, one.replicas) for one in before.cliques} if before else {}
    for clique in after.cliques:
        if counts.get(clique.name) != (clique.ready, clique.replicas):
            yield f"clique {clique.name}: {clique.ready}/{clique.replicas} ready"
    for gang in after.gangs:
        if phases.get(gang.name) != gang.phase:
            yield f"gang {gang.name}: {gang.phase}"
    for deleted in sorted(phases.keys() - {gang.name for gang in after.gangs}):
        yield f"gang {deleted}: deleted"
