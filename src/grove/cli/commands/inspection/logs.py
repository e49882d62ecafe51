"""`grove logs`: prints the logs of the pods of an object, merged, with prefixes."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from grove import timing
from grove.api.formats import durations
from grove.cli import options
from grove.cli.commands.inspection.one_object import find_object
from grove.cli.console import open_console
from grove.cli.pod_logs.output import LineFormat, LogOutput
from grove.cli.pod_logs.printing import LogPrinter, LogRequest
from grove.cli.pod_logs.sources import ContainerChoice
from grove.cli.pod_logs.streams import LogRange
from grove.explanation.reading import SubtreeReader
from grove.explanation.subtree import POD
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError


def logs(
    name: str,
    *,
    namespace: options.NamespaceOption = None,
    follow: Annotated[
        bool, Parameter(alias="-f", negative=(), help="Print lines as they come, also of later pods.")
    ] = False,
    container: Annotated[
        str, Parameter(alias="-c", help="Name of a container; default: that of kubectl in each pod.")
    ] = "",
    all_containers: Annotated[bool, Parameter(negative=(), help="All containers of the pods.")] = False,
    previous: Annotated[
        bool, Parameter(alias="-p", negative=(), help="The run of each container before its last restart.")
    ] = False,
    tail: Annotated[
        int | None,
        Parameter(help="Last lines of each container, -1 for all; default: 10, or all of a single pod."),
    ] = None,
    since: Annotated[str, Parameter(help="Only lines newer than a duration such as 5s, 2m or 3h.")] = "",
    timestamps: Annotated[bool, Parameter(negative=(), help="The time before each line.")] = False,
    prefix: Annotated[bool, Parameter(help="Pod and container before each line.")] = True,
    max_log_requests: Annotated[int, Parameter(help="Logs that may be read at once.")] = timing.LOG_STREAMS,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Print the logs of the pods of a set, group, clique, gang or graph, merged by time, with prefixes.

    With --follow, lines are printed as they come, also those of pods that are created and of containers that
    are restarted later, until all pods have ended, the object is deleted, or the command is interrupted.

    Exit codes: 0 printed; 1 there is no such object, there are no logs, or one of them could not be read.

    Parameters
    ----------
    name
        Name of a PodCliqueSet, PodGang, PodClique, PodCliqueScalingGroup, Pod or DynamoGraphDeployment, or
        kind/name, such as gang/demo-0.
    """
    if container and all_containers:
        raise ConfigError("--container and --all-containers exclude each other: use one of them")
    if follow and previous:
        raise ConfigError("--follow and --previous exclude each other: a run that has ended does not go on")
    if max_log_requests < 1:
        raise ConfigError(f"--max-log-requests {max_log_requests}: write 1 or more")
    choice = ContainerChoice(container, all_containers, previous)
    wanted = LogRange(tail, _seconds(since), previous, follow)
    format_ = LineFormat(prefix, timestamps)
    return asyncio.run(
        _print(name, namespace, choice, wanted, format_, max_log_requests, kubeconfig, context)
    )


def _seconds(since: str) -> int | None:
    """The seconds of a duration, rounded up: the server takes whole ones. Raises ConfigError."""
    if not since:
        return None
    try:
        found = durations.parse(since).total_seconds()
    except ValueError as error:
        raise ConfigError(f"--since: {error}") from None
    if found <= 0:
        raise ConfigError(f"--since {since}: write a duration above zero")
    return math.ceil(found)


async def _print(
    name: str,
    namespace: str | None,
    choice: ContainerChoice,
    wanted: LogRange,
    format_: LineFormat,
    limit: int,
    kubeconfig: Path | None,
    context: str | None,
) -> int:
    connection = config.load(kubeconfig, context)
    async with Client(connection) as client:
        reader = SubtreeReader(client, namespace or connection.namespace)
        about, resource, set_name = await find_object(client, reader, name)
        tail = timing.LOG_TAIL if wanted.tail is None and about.kind != POD else wanted.tail
        range_ = LogRange(
            None if tail is None or tail < 0 else tail, wanted.since_seconds, wanted.previous, wanted.follow
        )
        request = LogRequest(about, resource, set_name, choice, range_, limit)
        printer = LogPrinter(client, request, LogOutput(format_, open_console(), about.name))
        await (printer.print_following() if wanted.follow else printer.print_existing())
    return int(printer.failed)
