"""`grove events`: lists the events of an object and of all that belongs to it."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from grove.cli import options
from grove.cli.commands.inspection.one_object import read_object, report_skipped, set_name
from grove.cli.views.status.event_screen import EventScreen
from grove.explanation.events import Event
from grove.explanation.history import event_views
from grove.explanation.reading import SubtreeReader
from grove.explanation.subtree import Subtree
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS

if TYPE_CHECKING:
    from grove.kube.cache.cache import Cache

_WARNINGS = "type!=Normal"


def events(
    name: str,
    *,
    namespace: options.NamespaceOption = None,
    warnings: Annotated[bool, Parameter(negative=(), help="Only warnings.")] = False,
    watch: Annotated[
        bool, Parameter(alias="-w", negative=(), help="Show events as they happen, until interrupted.")
    ] = False,
    output: options.OutputOption = "table",
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """List the events of a workload and of all that belongs to it, the oldest first: of the set or graph, its
    groups, cliques, gangs, pods and fabric domains.

    The API server keeps events for an hour, unless it is configured otherwise. Events of pods that no longer
    exist are listed as well.

    Exit codes: 0 listed, also if there are none; 1 there is no such object, or it cannot be read.

    Parameters
    ----------
    name
        Name of a PodCliqueSet, PodGang, PodClique, PodCliqueScalingGroup, Pod or DynamoGraphDeployment, or
        kind/name, such as gang/demo-0.
    """
    screen, fields = EventScreen(output), _WARNINGS if warnings else ""
    asyncio.run(_show(name, namespace, fields, kubeconfig, context, screen, watch))
    return 0


async def _show(
    name: str,
    namespace: str | None,
    fields: str,
    kubeconfig: Path | None,
    context: str | None,
    screen: EventScreen,
    watch: bool,
) -> None:
    connection = config.load(kubeconfig, context)
    async with Client(connection) as client:
        place = namespace or connection.namespace
        reader = SubtreeReader(client, place)
        tree = await read_object(client, reader, name)
        report_skipped(reader)
        if watch:
            await _watch(client, tree, fields, screen)
        found = await client.list(EVENTS, as_type=Event, namespace=place, fields=fields)
    views = event_views(tree, found.items, time.time())
    screen.show(views)
    if not views:
        sys.stderr.write("no events\n")


async def _watch(client: Client, tree: Subtree, fields: str, screen: EventScreen) -> None:
    """Show events as they happen, until interrupted or until the object is gone."""
    from grove.explanation.watching import SubtreeWatch, event_cache

    found: Cache[Event] = event_cache(tree.about.namespace, fields)
    live = SubtreeWatch(tree.about, set_name(tree), more=[found])
    async with live.on(client):
        while True:
            screen.show(event_views(live.tree(), found, time.time()), live=True)
            await live.changed()
