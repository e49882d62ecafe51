"""`grove detach`: removes the operator's finalizer from all sets and its scheduling gates from all pods, so
that workloads outlive the operator."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.operator import finalizer_removal, pod_release


def detach(*, kubeconfig: Path | None = None, context: str | None = None) -> None:
    """Remove the operator's finalizers and scheduling gates, after the operator is uninstalled.

    Sets can then be deleted without an operator, and pods that waited for the operator are left to the
    scheduler, one by one; no nodes stay reserved for them. Pods keep running; an operator that is installed
    again continues to reconcile the sets.

    Parameters
    ----------
    kubeconfig
        Path of a kubeconfig; default: KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        Context of the kubeconfig; default: its current one.
    """
    asyncio.run(_detach(config.load(kubeconfig, context)))


async def _detach(connection: config.Config) -> None:
    async with Client(connection) as client:
        async for name in finalizer_removal.remove_finalizers(client):
            sys.stdout.write(f"podcliqueset {name} detached\n")
        async for name in pod_release.release_pods(client):
            sys.stdout.write(f"pod {name} released\n")
