"""`grove rollout status|pause|resume`: follows the rollout of a set, holds it and continues it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.api.types.podcliqueset import PodCliqueSet, UpdateStrategyType
from grove.cli import options
from grove.cli.commands.actions.workload import (
    GRAPHS,
    SETS,
    Workload,
    find_workload,
    parsed_timeout,
)
from grove.cli.printable import printable
from grove.cli.structured_output import write_structured
from grove.cli.views.actions.rollout_view import (
    ENDED,
    RolloutPhase,
    RolloutView,
    restart_of_graph,
    rollout_line,
    rollout_view,
)
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.operator_lease import read_leases
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.errors import KubeError
from grove.views.operator_view import operator_line, operator_view

if TYPE_CHECKING:
    from grove.kube.cache.cache import Cache

EXIT_NOT_COMPLETE = 2

app = App(name="rollout", help="Follow the rollout of a workload, hold it, or continue it.")


@app.command
def status(
    name: str,
    /,
    *,
    namespace: options.NamespaceOption = None,
    watch: Annotated[bool, Parameter(alias="-w", help="Wait until the rollout is complete.")] = True,
    timeout: Annotated[str, Parameter(help="How long to wait, such as 5m; 0: without limit.")] = "0",
    output: options.StructuredOption = "table",
    lease: Annotated[str, Parameter(help="Name of the operator's Lease.")] = OPERATOR_LEASE,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Show how far the rollout of a workload is, and wait until it is complete.

    A rollout follows a change of the template, or a restart. It is complete when all replicas are updated and
    available. Each change is a line; with -o json or yaml there is one document, at the end.

    Exit codes: 0 complete; 1 there is no such workload, or the cluster cannot be read; 2 not complete: past
    progressDeadline, being deleted, with strategy OnDelete, not within --timeout, or with --no-watch.

    Parameters
    ----------
    name
        Name of a PodCliqueSet or DynamoGraphDeployment.
    """
    seconds = parsed_timeout(timeout)
    connection = config.load(kubeconfig, context)
    return asyncio.run(
        _status(connection, name, namespace or connection.namespace, watch, seconds, output, lease)
    )


@app.command
def pause(
    name: str,
    /,
    *,
    namespace: options.NamespaceOption = None,
    output: options.StructuredOption = "table",
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Hold the rollout of a workload: no further pods are replaced, unless they fail.

    Exit codes: 0 it is paused; 1 there is no such workload, or it cannot be changed.

    Parameters
    ----------
    name
        Name of a PodCliqueSet or DynamoGraphDeployment.
    """
    return _set_paused(name, namespace, True, output, config.load(kubeconfig, context))


@app.command
def resume(
    name: str,
    /,
    *,
    namespace: options.NamespaceOption = None,
    output: options.StructuredOption = "table",
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Continue the rollout of a workload that was paused.

    Exit codes: 0 it continues; 1 there is no such workload, or it cannot be changed.

    Parameters
    ----------
    name
        Name of a PodCliqueSet or DynamoGraphDeployment.
    """
    return _set_paused(name, namespace, False, output, config.load(kubeconfig, context))


async def _status(
    connection: config.Config,
    name: str,
    namespace: str,
    watch: bool,
    seconds: float | None,
    output: options.Output,
    lease: str,
) -> int:
    async with Client(connection) as client:
        found, leases = await asyncio.gather(
            find_workload(client, name, namespace), read_leases(client, lease)
        )
        operator = operator_view(leases, time.time()) if leases is not None else None
        if operator is not None and not operator.alive:
            sys.stderr.write(printable(operator_line(operator, lease)) + "\n")
        view = _view(found)
        text = output == "table"
        if text:
            _print(view)
        if watch and view.phase not in ENDED:
            view = await _followed(client, found, view, seconds, text)
        if not text:
            write_structured(view, output)
    return 0 if view.complete else EXIT_NOT_COMPLETE


def _view(found: Workload) -> RolloutView:
    view = rollout_view(found.workload)
    return restart_of_graph(view, found.graph) if found.graph is not None else view


async def _followed(
    client: Client, found: Workload, view: RolloutView, seconds: float | None, text: bool
) -> RolloutView:
    """The rollout at its end, or at the end of the time. Each change is printed."""
    try:
        async with asyncio.timeout(seconds):
            async for current in _changes(client, found):
                if text and rollout_line(current) != rollout_line(view):
                    _print(current)
                view = current
                if view.phase in ENDED:
                    break
    except TimeoutError:
        sys.stderr.write("grove: the rollout is not complete within --timeout: run the command again\n")
    return view


async def _changes(client: Client, found: Workload) -> AsyncIterator[RolloutView]:
    """The rollout after each watch event of the set or of its graph. Raises KubeError when the set is
    deleted."""
    from grove.kube.cache.reflector import Reflector  # after the first line is shown

    meta, changed = found.workload.metadata, asyncio.Event()
    sets: Cache[PodCliqueSet] = _cache(SETS, PodCliqueSet, meta.namespace, meta.name)
    caches: list[Cache[Any]] = [sets]
    if found.graph is not None:
        graph = found.graph.metadata
        caches.append(_cache(GRAPHS, DynamoGraphDeployment, graph.namespace, graph.name))
    for cache in caches:
        cache.subscribe(lambda _old, _new: changed.set())
    tasks = [asyncio.create_task(Reflector(client, cache).run()) for cache in caches]
    try:
        for cache in caches:
            await cache.synced.wait()
        while True:
            changed.clear()
            workload = sets.get(meta.namespace, meta.name)
            if workload is None or workload.metadata.uid != meta.uid:
                raise KubeError(f"PodCliqueSet {meta.name} was deleted")
            yield _view(Workload(workload, next(iter(caches[1]), None) if len(caches) > 1 else None))
            await changed.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _cache(resource: Resource, as_type: type[Any], namespace: str, name: str) -> Cache[Any]:
    from grove.kube.cache.cache import Cache

    return Cache(resource, as_type, namespace=namespace, fields=f"metadata.name={name}")


def _print(view: RolloutView) -> None:
    sys.stdout.write(printable(rollout_line(view)) + "\n")
    sys.stdout.flush()  # the next line may be minutes later


def _set_paused(
    name: str, namespace: str | None, paused: bool, output: options.Output, connection: config.Config
) -> int:
    found, changed = asyncio.run(_write_paused(connection, name, namespace or connection.namespace, paused))
    view = _view(found)
    if output != "table":
        write_structured(view, output)
    else:
        word = "paused" if paused else "resumed"
        did = word if changed else f"is {'already paused' if paused else 'not paused'}"
        sys.stdout.write(printable(f"PodCliqueSet {view.name} {did}") + "\n")
    for note in _notes(found, paused):
        sys.stderr.write(printable(f"grove: {note}") + "\n")
    return 0


def _notes(found: Workload, paused: bool) -> list[str]:
    """What the user may not expect."""
    notes = []
    if found.graph is not None and paused:
        notes.append(
            f"DynamoGraphDeployment {found.graph.metadata.name} ends the pause with its next change: it "
            "writes the spec of the set"
        )
    if found.workload.spec.update_strategy.type is UpdateStrategyType.ON_DELETE:
        notes.append("the strategy of the set is OnDelete: it has no rollout that could be paused")
    elif paused and rollout_view(found.workload).phase is RolloutPhase.PAUSED:
        notes.append("pods that are lost meanwhile are replaced from the latest template")
    return notes


async def _write_paused(
    connection: config.Config, name: str, namespace: str, paused: bool
) -> tuple[Workload, bool]:
    """The workload after the write, and whether the write changed anything."""
    async with Client(connection) as client:
        found = await find_workload(client, name, namespace)
        before, meta = found.workload.spec.update_strategy.paused, found.workload.metadata
        if before is paused:
            return found, False
        # Without the uid, a set that was deleted and created again meanwhile would be changed.
        body = {"metadata": {"uid": meta.uid}, "spec": {"updateStrategy": {"paused": paused}}}
        written = await client.patch(
            SETS, meta.name, body, namespace=namespace, field_manager="grove-cli", as_type=PodCliqueSet
        )
        return Workload(written, found.graph), True
