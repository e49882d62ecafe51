"""`grove explain`: says why a workload waits, what each domain lacks, and what would help."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.commands.inspection.cluster_input import ClusterInput, report_unread
from grove.cli.console import open_console, output_width
from grove.cli.exit_codes import ExitCode
from grove.cli.scope import check_scope
from grove.cli.structured_output import is_structured, is_text, object_name, write_names, write_structured
from grove.cli.views.explanation_screen import ExplanationScreen
from grove.cluster_state.model import UnreadKind
from grove.explanation.early import explain_early
from grove.explanation.events import Event
from grove.explanation.model import Explanation
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS
from grove.kube.errors import ApiError

if TYPE_CHECKING:
    from grove.explanation.explain import Explainer, Preparation


class _Scope(NamedTuple):
    """Which sets are explained."""

    namespace: str | None
    all_namespaces: bool
    selector: str


def explain(
    name: str | None = None,
    *,
    namespace: options.NamespaceOption = None,
    all_namespaces: options.AllOption = False,
    selector: options.SelectorOption = None,
    output: options.OutputOption = "table",
    exit_code: options.ExitCodeOption = False,
    lease: options.LeaseOption = OPERATOR_LEASE,
    snapshot: options.SnapshotOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Say why a workload waits: its reasons, the oldest cause first, what each domain of nodes lacks, which
    pods hold the rest, what would make room, and what containers and events say.

    It works without a running operator, and with rights on one namespace only; what it could not read is
    listed on stderr.

    Parameters
    ----------
    name
        Name of a PodCliqueSet, PodGang, PodClique, PodCliqueScalingGroup, Pod or DynamoGraphDeployment, or
        kind/name, such as gang/demo-0; default: every set that waits.
    """
    check_scope(name, namespace, all_namespaces, selector)
    source = ClusterInput(snapshot, kubeconfig, context)
    if name is None:
        scope = _Scope(namespace, all_namespaces, selector or "")
        found = asyncio.run(_waiting(source, scope, lease, details=is_structured(output)))
        _show_all(found, output)
    else:
        found = [asyncio.run(_explain(source, name, namespace, lease, output))]
    waits = any(each.waits for each in found)
    return ExitCode.PROBLEM if exit_code and waits else ExitCode.OK


async def _waiting(source: ClusterInput, scope: _Scope, lease: str, *, details: bool) -> list[Explanation]:
    """All sets of a scope that wait."""
    place = scope.namespace or source.namespace
    shown = None if scope.all_namespaces else place
    async with _explainer(source, place, shown, lease) as explainer:
        return explainer.waiting(shown, scope.selector, details=details)


async def _explain(
    source: ClusterInput, name: str, namespace: str | None, lease: str, output: options.Output
) -> Explanation:
    """Explain one object, and show it; as text, what is known early is shown early."""
    place = namespace or source.namespace
    screen = ExplanationScreen(output) if is_text(output) else None
    if screen is not None and source.snapshot is None:
        async with Client(source.connection()) as client:
            early = await explain_early(client, name, place, lease)
        if early is not None:
            screen.show_early(early)
            if not early.explanation.waits:
                return early.explanation
    async with _explainer(source, place, place, lease) as explainer:
        found = explainer.explain(name, place)
        if screen is not None:
            screen.show(found)
        else:
            _write(found, [found], output)
    return found


@asynccontextmanager
async def _explainer(
    source: ClusterInput, place: str, events_of: str | None, lease: str
) -> AsyncIterator[Explainer]:
    """Explains the objects of the cluster. What could not be read is reported after the block."""
    (preparation, state), (events, unread) = await asyncio.gather(
        source.read(partial(_prepare, lease), place), _events(source, events_of)
    )
    explainer = preparation.explainer(state, events)
    yield explainer
    report_unread(explainer.state, [*unread, *explainer.unplanned()])


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


def _show_all(found: Sequence[Explanation], output: options.Output) -> None:
    if not is_text(output):
        _write({"items": found}, found, output)
    elif not found:
        sys.stdout.write("nothing waits\n")
    else:
        from grove.cli.views.explanation_lines import summary_lines

        width = output_width(open_console(), output)
        sys.stdout.write("\n".join(summary_lines(found, width)) + "\n")


def _write(document: object, found: Sequence[Explanation], output: options.Output) -> None:
    """Write a document, or the names of what waits."""
    if is_structured(output):
        write_structured(document, output)
    else:
        write_names(object_name(each.about.kind, each.about.name) for each in found if each.waits)
