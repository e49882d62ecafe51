"""`grove restart`: requests the restart of a set, a replica, a clique, a group or a replica of a group. The
operator replaces the pods, by the rules of an update; the command deletes none."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from grove.api.naming import labels
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import UpdateStrategyType
from grove.cli import options
from grove.cli.commands.actions.restart_target import RestartTarget, UnitOptions, find_target
from grove.cli.commands.actions.workload import GRAPHS, SETS
from grove.cli.printable import printable
from grove.cli.structured_output import write_structured
from grove.cli.views.actions.restart_view import RestartView, affected, restart_lines, unit_text
from grove.explanation.operator_lease import read_leases
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError
from grove.operator.caches.resources import resource_of
from grove.views.operator_view import operator_line, operator_view

_CLIQUES = resource_of(PodClique.KIND)
_MANAGER = "grove-cli"


def restart(
    name: str,
    /,
    *,
    namespace: options.NamespaceOption = None,
    replica: Annotated[int | None, Parameter(help="Only this replica of the set.")] = None,
    clique: Annotated[str | None, Parameter(help="Only the clique of this name in the template.")] = None,
    group: Annotated[str | None, Parameter(help="Only the group of this name in the template.")] = None,
    group_replica: Annotated[int | None, Parameter(help="Only this replica of the group.")] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Ask the API server, and restart nothing.")] = False,
    output: options.StructuredOption = "table",
    lease: Annotated[str, Parameter(help="Name of the operator's Lease.")] = OPERATOR_LEASE,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Restart a workload, or a part of it. The operator replaces the pods as an update would: one replica of
    the set after another, in it one pod, or one replica of a group, at a time.

    A DynamoGraphDeployment is restarted by its spec.restart.id, one component after another.

    Exit codes: 0 the restart is requested; 1 there is no such workload or part, or it cannot be restarted.

    Parameters
    ----------
    name
        Name of a PodCliqueSet or DynamoGraphDeployment, or of a PodClique, PodCliqueScalingGroup or PodGang,
        which may be preceded by its kind: podgang/chat-0.
    """
    unit = UnitOptions(replica, clique, group, group_replica)
    connection = config.load(kubeconfig, context)
    view, notes = asyncio.run(
        _restart(connection, name, namespace or connection.namespace, unit, dry_run, lease)
    )
    if output == "table":
        sys.stdout.write("".join(f"{printable(line)}\n" for line in restart_lines(view)))
        sys.stdout.flush()  # before what follows on stderr
    else:
        write_structured(view, output)
    for note in notes:
        sys.stderr.write(printable(f"grove: {note}") + "\n")
    return 0


async def _restart(
    connection: config.Config, written: str, namespace: str, unit: UnitOptions, dry_run: bool, lease: str
) -> tuple[RestartView, list[str]]:
    async with Client(connection) as client:
        target, leases = await asyncio.gather(
            find_target(client, written, namespace, unit), read_leases(client, lease)
        )
        _check_strategy(target)
        view = await _view(client, target, namespace, dry_run)
        await _request(client, target, view)
    notes = []
    if target.workload is not None and target.workload.spec.update_strategy.paused:
        name = target.workload.metadata.name
        notes.append(
            f"updates of PodCliqueSet {name} are paused: the restart begins after grove rollout resume"
        )
    if leases is not None and not (operator := operator_view(leases, time.time())).alive:
        notes.append(operator_line(operator, lease))
    return view, notes


def _check_strategy(target: RestartTarget) -> None:
    workload = target.workload
    if workload is None or workload.spec.update_strategy.type is not UpdateStrategyType.ON_DELETE:
        return
    raise ConfigError(
        f"PodCliqueSet {workload.metadata.name} has the update strategy OnDelete, with which the operator "
        "replaces only pods that you delete: kubectl delete pod, or change spec.updateStrategy.type"
    )


async def _view(client: Client, target: RestartTarget, namespace: str, dry_run: bool) -> RestartView:
    """What the restart replaces. Raises ConfigError if that is nothing."""
    found: list[PodClique] = []
    workload, unit = target.workload, target.unit
    text = "all components"
    if workload is not None:
        chosen = labels.managed(workload.metadata.name)
        listed = await client.list(_CLIQUES, as_type=PodClique, namespace=namespace, labels=chosen)
        found = affected(workload, unit, listed.items)
        if target.graph is None:
            text = unit_text(unit, [each.name for each in workload.spec.template.pod_clique_scaling_groups])
        if not found:
            name = workload.metadata.name
            raise ConfigError(f"PodCliqueSet {name}: {text}: nothing to restart: grove tree {name} shows it")
    kind, name = target.object
    return RestartView(
        namespace,
        kind.kind,
        name,
        text,
        tuple(sorted(each.metadata.name for each in found)),
        sum(each.spec.replicas for each in found),
        datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        dry_run,
    )


async def _request(client: Client, target: RestartTarget, view: RestartView) -> None:
    """Write the request, on the object that was read: another one of this name is not restarted."""
    body: dict[str, Any]
    if target.graph is not None:
        meta = target.graph.metadata
        resource, body = GRAPHS, {"spec": {"restart": {"id": view.request}}}
    else:
        assert target.workload is not None
        meta = target.workload.metadata
        resource, body = SETS, {"metadata": {"annotations": {target.unit.annotation: view.request}}}
    body["metadata"] = {**body.get("metadata", {}), "uid": meta.uid}
    await client.patch(
        resource,
        meta.name,
        body,
        namespace=meta.namespace,
        field_manager=_MANAGER,
        dry_run=view.dry_run,
        as_type=dict,
    )
