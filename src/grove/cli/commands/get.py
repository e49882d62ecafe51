"""`grove get`: lists PodCliqueSets, one per line, and says whether an operator leads."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Annotated

from cyclopts import Parameter

from grove.api.configuration.types import LeaderElection
from grove.cli import options
from grove.cli.commands import common
from grove.cli.console import open_console
from grove.cli.printable import printable
from grove.cli.views.operator_view import OperatorView, operator_line, operator_view
from grove.cli.views.set_table import table
from grove.cli.views.set_view import SetObjects, set_views
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import LEASES
from grove.kube.errors import Forbidden
from grove.kube.leader.lease import Lease

_LEASE = LeaderElection().resource_name


def get(
    name: str | None = None,
    *,
    namespace: options.NamespaceOption = None,
    all_namespaces: options.AllOption = False,
    output: options.OutputOption = "text",
    lease: Annotated[str, Parameter(help="Name of the operator's Lease.")] = _LEASE,
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
    connection, place = common.load_config(kubeconfig, context, name, namespace, all_namespaces)
    objects, operator = asyncio.run(_read(connection, place, name, lease))
    views = set_views(objects, time.time())
    if output == "json":
        common.show_json(views, operator=operator)
        return 0
    if views:
        lines = table(views, namespaces=all_namespaces, width=common.output_width(open_console()))
        sys.stdout.write("\n".join(map(printable, lines)) + "\n")
        sys.stdout.flush()  # before what follows on stderr
    else:
        elsewhere = "this namespace: grove get -A lists those of all namespaces"
        sys.stderr.write(f"no PodCliqueSets in {'any namespace' if all_namespaces else elsewhere}\n")
    if operator is not None:
        sys.stderr.write(printable(operator_line(operator, lease)) + "\n")
    return 0


async def _read(
    connection: config.Config, namespace: str | None, name: str | None, lease: str
) -> tuple[SetObjects, OperatorView | None]:
    return await asyncio.gather(common.read(connection, namespace, name), _operator(connection, lease))


async def _operator(connection: config.Config, lease: str) -> OperatorView | None:
    """The operator by its Lease, in whichever namespace; None if this user may not list Leases."""
    async with Client(connection) as client:
        try:
            found = await client.list(LEASES, as_type=Lease, fields=f"metadata.name={lease}")
        except Forbidden:
            return None
    return operator_view(found.items, time.time())
