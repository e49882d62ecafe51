"""`grove tree`: prints a set and the objects below it, down to the pods."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

from cyclopts import Parameter

from grove.cli import options
from grove.cli.commands import common
from grove.cli.console import open_console, output_width
from grove.cli.scope import load_config
from grove.cli.structured_output import is_structured, is_text, write_names, write_structured
from grove.cli.views.object_names import object_names
from grove.cli.views.text_layout import TextLine, lines
from grove.cli.views.text_layout import tree as rows
from grove.views.set_view import SetObjects, SetView, set_views


def tree(
    name: str | None = None,
    *,
    namespace: options.NamespaceOption = None,
    all_namespaces: options.AllOption = False,
    selector: options.SelectorOption = None,
    pods: Annotated[bool, Parameter(help="Show pods, or only down to the cliques.")] = True,
    output: options.OutputOption = "table",
    watch: options.WatchOption = False,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Show a PodCliqueSet as a tree: its replicas, gangs, groups, cliques and pods, with their state.

    Parameters
    ----------
    name
        Name of a PodCliqueSet; default: all of the namespace.
    """
    connection, place = load_config(kubeconfig, context, name, namespace, all_namespaces, selector)
    if watch:
        from grove.cli.commands.inspection.watching import WatchedSets, watch_trees

        asyncio.run(watch_trees(connection, WatchedSets(place, name, selector), output, pods=pods))
    screen = _TreeScreen(output, pods=pods)
    early = screen.show_early if is_text(output) else None
    objects = asyncio.run(common.read(connection, place, name, selector, early=early))
    views = set_views(objects, time.time())
    if is_structured(output):
        write_structured({"items": views}, output)
    elif output == "name":
        write_names(each for view in views for each in object_names(view, pods=pods))
    elif views:
        screen.show(views)
    else:
        common.report_no_sets(selector, all_namespaces=all_namespaces)
    return 0


class _TreeScreen:
    """Shows trees: the line of the first set as soon as the sets are read, the rest below it."""

    def __init__(self, output: options.Output, *, pods: bool) -> None:
        self._console, self._pods = open_console(), pods
        self._width = output_width(self._console, output)
        self._shown: list[TextLine] = []

    def show_early(self, objects: SetObjects) -> None:
        """Show the line of the first set."""
        for view in set_views(objects, time.time())[:1]:
            self._shown = list(self._lines(view))[:1]
            common.show(self._shown, self._console)
            sys.stdout.flush()

    def show(self, views: Iterable[SetView]) -> None:
        """Show the rest."""
        for view in views:
            common.show(islice(self._lines(view), len(self._shown), None), self._console)
            self._shown = []

    def _lines(self, view: SetView) -> Iterator[TextLine]:
        return lines(rows(view, pods=self._pods), self._width)
