"""`grove get`: lists PodCliqueSets, one per line, and says whether an operator leads."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.commands import common
from grove.cli.console import open_console, output_width
from grove.cli.printable import printable
from grove.cli.scope import load_config
from grove.cli.structured_output import is_structured, object_name, write_names, write_structured
from grove.cli.views.set_table import table
from grove.explanation.operator_lease import read_leases
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.views.operator_view import OperatorView, operator_line, operator_view
from grove.views.set_view import SetObjects, SetView, set_views


def get(
    name: str | None = None,
    *,
    namespace: options.NamespaceOption = None,
    all_namespaces: options.AllOption = False,
    selector: options.SelectorOption = None,
    output: options.OutputOption = "table",
    watch: options.WatchOption = False,
    lease: options.LeaseOption = OPERATOR_LEASE,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """List PodCliqueSets with their available replicas, running gangs, ready pods, topology and errors, and
    say whether an operator leads.

    Parameters
    ----------
    name
        Name of a PodCliqueSet; default: all of the namespace.
    """
    connection, place = load_config(kubeconfig, context, name, namespace, all_namespaces, selector)
    pods = output not in ("table", "name")  # a list of sets is shown before a thousand pods are read
    if watch:
        from grove.cli.commands.inspection.watching import WatchedSets, watch_table

        wanted = WatchedSets(place, name, selector, pods=pods)
        asyncio.run(watch_table(connection, wanted, output, namespaces=all_namespaces))
    objects, operator = asyncio.run(_read(connection, place, name, selector, lease, pods=pods))
    views = set_views(objects, time.time())
    if is_structured(output):
        write_structured({"items": views, "operator": operator}, output)
        return 0
    if output == "name":
        write_names(object_name(common.SETS.kind, view.name) for view in views)
        return 0
    if views:
        _show(views, output, all_namespaces)
    else:
        common.report_no_sets(selector, all_namespaces=all_namespaces)
    if operator is not None:
        sys.stderr.write(printable(operator_line(operator, lease)) + "\n")
    return 0


def _show(views: Sequence[SetView], output: options.Output, all_namespaces: bool) -> None:
    width = output_width(open_console(), output)
    lines = table(views, namespaces=all_namespaces, width=width, wide=output == "wide")
    sys.stdout.write("\n".join(map(printable, lines)) + "\n")
    sys.stdout.flush()  # before what follows on stderr


async def _read(
    connection: config.Config,
    namespace: str | None,
    name: str | None,
    selector: str | None,
    lease: str,
    *,
    pods: bool,
) -> tuple[SetObjects, OperatorView | None]:
    return await asyncio.gather(
        common.read(connection, namespace, name, selector, pods=pods), _operator(connection, lease)
    )


async def _operator(connection: config.Config, lease: str) -> OperatorView | None:
    """The operator by its Lease, in whichever namespace; None if this user may not list Leases."""
    async with Client(connection) as client:
        found = await read_leases(client, lease)
    return operator_view(found, time.time()) if found is not None else None
