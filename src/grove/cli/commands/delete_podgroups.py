"""`grove delete-podgroups`: deletes what Kubernetes 1.37 cannot read, before an upgrade from 1.36."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.operator import podgroup_removal


def delete_podgroups(
    *, kubeconfig: Path | None = None, context: str | None = None, lease: str = OPERATOR_LEASE
) -> int:
    """Delete the operator's PodGroups of scheduling.k8s.io/v1alpha2, before Kubernetes 1.36 is upgraded.

    Stop the operator first. Pods keep running; the operator on the upgraded cluster creates PodGroups of
    the same names.

    Exit codes: 0 no PodGroup is left; 1 an operator is running, or PodGroups of others are left.

    Parameters
    ----------
    kubeconfig
        Path of a kubeconfig; default: KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        Context of the kubeconfig; default: its current one.
    lease
        Name of the operator's Lease, if its configuration has another leaderElection.resourceName.
    """
    return asyncio.run(_delete(config.load(kubeconfig, context), lease))


async def _delete(connection: config.Config, lease: str) -> int:
    async with Client(connection) as client:
        await podgroup_removal.reject_running_operator(client, lease)
        async for name in podgroup_removal.delete_pod_groups(client):
            sys.stdout.write(f"podgroup {name} deleted\n")
        others = await podgroup_removal.other_pod_groups(client)
    for name in others:
        sys.stderr.write(f"podgroup {name} is not of this operator: delete it before the upgrade as well\n")
    return 1 if others else 0
