"""`grove status`: says on one page whether a workload is healthy."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from msgspec import Struct

from grove import timing
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.commands.inspection.one_object import read_object, report_skipped, set_name
from grove.cli.exit_codes import ExitCode
from grove.cli.views.status.status_screen import StatusScreen, open_screen
from grove.explanation.reading import SubtreeReader
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.views.status.model import StatusView, Verdict
from grove.views.status.status_view import status_view

EXIT_CODES = {Verdict.HEALTHY: ExitCode.OK, Verdict.UNKNOWN: ExitCode.UNKNOWN}
"""Of all other verdicts it is `ExitCode.PROBLEM`."""


def status(
    name: str,
    *,
    namespace: options.NamespaceOption = None,
    watch: options.WatchOption = False,
    output: options.OutputOption = "table",
    lease: options.LeaseOption = OPERATOR_LEASE,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Say on one page whether a workload is healthy: its replicas, update, constraints, gangs with their
    domains and scores, fabric domains, what it waits for, and errors.

    Exit codes: 0 healthy; 1 there is no such object, or it cannot be read; 2 not healthy: it starts, is
    updated, waits, has failed or is being deleted; 3 no operator leads, so that what is shown may be
    outdated.

    Parameters
    ----------
    name
        Name of a PodCliqueSet, PodGang, PodClique, PodCliqueScalingGroup, Pod or DynamoGraphDeployment, or
        kind/name, such as gang/demo-0.
    """
    with open_screen(output, lease, live=watch) as screen:
        shown = asyncio.run(_show(_Wanted(name, namespace, lease, kubeconfig, context), screen, watch))
    return EXIT_CODES.get(shown.verdict, ExitCode.PROBLEM)


class _Wanted(Struct, frozen=True):
    name: str
    namespace: str | None
    lease: str
    kubeconfig: Path | None
    context: str | None

    def connection(self) -> Config:
        return config.load(self.kubeconfig, self.context)


async def _show(wanted: _Wanted, screen: StatusScreen, watch: bool) -> StatusView:
    connection = wanted.connection()
    async with Client(connection) as client:
        reader = SubtreeReader(client, wanted.namespace or connection.namespace)
        tree, leases = await asyncio.gather(
            read_object(client, reader, wanted.name), reader.leases(wanted.lease)
        )
        found = status_view(tree, leases, time.time())
        screen.show(found)
        report_skipped(reader)
        if watch:
            from grove.explanation.watching import SubtreeWatch  # imports the caches, which take as long

            live = SubtreeWatch(tree.about, set_name(tree), wanted.lease)
            async with live.on(client):
                while True:
                    screen.show(status_view(live.tree(), live.leases(), time.time()))
                    await live.changed(timing.STATUS_REFRESH)
    return found
