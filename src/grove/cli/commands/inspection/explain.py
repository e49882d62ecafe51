"""`grove explain`: says why a workload waits, what each domain lacks, and what would help."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from grove.api.configuration.types import LeaderElection
from grove.cli import options
from grove.cli.commands.inspection.cluster_input import ClusterInput, report_unread
from grove.cli.console import open_console
from grove.cli.structured_output import write_structured
from grove.cluster_state.model import UnreadKind
from grove.explanation.events import Event
from grove.explanation.model import Explanation
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS
from grove.kube.errors import ApiError, ConfigError

if TYPE_CHECKING:
    from grove.explanation.explain import Preparation

EXIT_WAITS = 2


def explain(
    name: str | None = None,
    *,
    namespace: options.NamespaceOption = None,
    all_namespaces: options.AllOption = False,
    output: options.StructuredOption = "text",
    exit_code: Annotated[
        bool, Parameter(negative=(), help="End with exit code 2 if something waits.")
    ] = False,
    lease: Annotated[str, Parameter(help="Name of the operator's Lease.")] = LeaderElection().resource_name,
    snapshot: options.SnapshotOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Say why a workload waits: its reasons, the oldest cause first, what each domain of nodes lacks, which
    pods hold the rest, what would make room, and what containers and events say.

    It works without a running operator, and with rights on one namespace only; what it could not read is
    listed on stderr.

    Exit codes: 0 explained, or nothing waits; 1 there is no such object, or the cluster cannot be read; 2
    something waits, with --exit-code.

    Parameters
    ----------
    name
        Name of a PodCliqueSet, PodGang, PodClique, PodCliqueScalingGroup, Pod or DynamoGraphDeployment, or
        kind/name, such as gang/demo-0; default: every set that waits.
    """
    if all_namespaces and namespace:
        raise ConfigError(f"--namespace {namespace} and --all-namespaces exclude each other: use one of them")
    if all_namespaces and name:
        raise ConfigError(f"{name}: a name needs a namespace: replace --all-namespaces with --namespace")
    source = ClusterInput(snapshot, kubeconfig, context)
    details = output != "text"
    found = asyncio.run(_explain(source, name, namespace, all_namespaces, lease, details=details))
    _show(found, output, summary=name is None)
    return EXIT_WAITS if exit_code and any(each.waits for each in found) else 0


async def _explain(
    source: ClusterInput,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    lease: str,
    *,
    details: bool,
) -> list[Explanation]:
    place = namespace or source.namespace
    (preparation, state), (events, unread) = await asyncio.gather(
        source.read(partial(_prepare, lease), place), _events(source, None if all_namespaces else place)
    )
    explainer = preparation.explainer(state, events)
    if name is not None:
        found = [explainer.explain(name, place)]
    else:
        found = explainer.waiting(None if all_namespaces else place, details=details)
    report_unread(state, [*unread, *explainer.unplanned()])
    return found


def _prepare(lease: str) -> Preparation:
    from grove.explanation.explain import Preparation

    return Preparation(lease)


async def _events(source: ClusterInput, namespace: str | None) -> tuple[Sequence[Event], list[UnreadKind]]:
    """The warnings of a namespace or of all, and why they cannot be read."""
    if source.snapshot is not None:
        return (), []
    async with Client(source.connection()) as client:
        try:
            found = await client.list(EVENTS, as_type=Event, namespace=namespace, fields="type!=Normal")
        except ApiError as error:
            return (), [UnreadKind(EVENTS.label, str(error))]
    return found.items, []


def _show(found: Sequence[Explanation], output: options.Output, *, summary: bool) -> None:
    if output != "text":
        write_structured({"items": found} if summary else found[0], output)
        return
    from grove.cli.views.explanation_lines import coloured_explanation, explanation_lines, summary_lines

    console = open_console()
    width = console.width if console.is_terminal else None
    if summary and not found:
        sys.stdout.write("nothing waits\n")
    elif summary:
        sys.stdout.write("\n".join(summary_lines(found, width)) + "\n")
    for line in () if summary else explanation_lines(found[0], time.time(), width):
        if console.is_terminal:
            console.print(coloured_explanation(line), no_wrap=True, overflow="crop", crop=False)
        else:
            sys.stdout.write(line.text + "\n")
