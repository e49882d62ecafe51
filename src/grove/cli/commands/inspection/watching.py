"""`grove get --watch` and `grove tree --watch`: sets while they change, from watches of the API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple, NoReturn

from rich.text import Text

from grove.cli.commands import common
from grove.cli.options import Output
from grove.cli.printable import printable
from grove.cli.structured_output import object_name
from grove.cli.views.live.demo_screen import changes
from grove.cli.views.live.set_screens import SetsScreen, Views, open_sets_screen, same
from grove.cli.views.live.set_watcher import SetWatcher
from grove.cli.views.object_names import object_names
from grove.cli.views.set_table import table
from grove.cli.views.text_layout import coloured, lines, tree
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.views.set_view import SetView


class WatchedSets(NamedTuple):
    """Which sets are shown; `namespace` is None for those of all namespaces."""

    namespace: str | None
    name: str | None
    selector: str | None
    pods: bool = True


async def watch_table(
    connection: Config, wanted: WatchedSets, output: Output, *, namespaces: bool
) -> NoReturn:
    """Show a line for each set, until interrupted."""
    rows = partial(table, namespaces=namespaces, wide=output == "wide")

    def rendered(views: Views, width: int | None) -> Iterator[Text]:
        return (Text(printable(line)) for line in rows(views, width=None if output == "wide" else width))

    def changed(before: Views, after: Views) -> Iterator[str]:
        known = _by_name(before)
        for view, line in zip(after, rows(after)[1:], strict=True):
            if not same(known.pop((view.namespace, view.name), None), view):
                yield line
        yield from (f"{_name(view)} deleted" for view in known.values())

    with open_sets_screen(output, rendered, changed, lambda view: [_name(view)]) as screen:
        await _watch(connection, wanted, screen)


async def watch_trees(connection: Config, wanted: WatchedSets, output: Output, *, pods: bool) -> NoReturn:
    """Show sets as trees, until interrupted."""

    def rendered(views: Views, width: int | None) -> Iterator[Text]:
        size = None if output == "wide" else width
        return (coloured(line) for view in views for line in lines(tree(view, pods=pods), size))

    def changed(before: Views, after: Views) -> Iterator[str]:
        known = _by_name(before)
        for view in after:
            was = known.pop((view.namespace, view.name), None)
            if was is None or (was.available, was.replicas) != (view.available, view.replicas):
                yield f"set {view.name}: {view.available}/{view.replicas} available"
            yield from changes(was, view)
        yield from (f"set {view.name}: deleted" for view in known.values())

    names = partial(object_names, pods=pods)
    with open_sets_screen(output, rendered, changed, names) as screen:
        await _watch(connection, wanted, screen)


async def _watch(connection: Config, wanted: WatchedSets, screen: SetsScreen) -> NoReturn:
    """Show the sets after each change. What cannot be read at all is an error, as without --watch."""
    found = await common.read(connection, wanted.namespace, wanted.name, wanted.selector, pods=False)
    async with Client(connection) as client:
        watcher = SetWatcher(
            wanted.namespace,
            wanted.name,
            wanted.selector or "",
            pods=wanted.pods,
            claims=bool(found.claims),
        )
        await watcher.check_rights(client)
        async with watcher.on(client):
            async for views in watcher.states():
                screen.show(views)
    raise AssertionError("the states of sets do not end")


def _by_name(views: Iterable[SetView]) -> dict[tuple[str, str], SetView]:
    return {(view.namespace, view.name): view for view in views}


def _name(view: SetView) -> str:
    return object_name(common.SETS.kind, view.name)
