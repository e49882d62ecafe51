"""`grove detach`: removes the operator's finalizer from all sets, so that workloads outlive the operator."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.operator import finalizer_removal


def detach(*, kubeconfig: Path | None = None, context: str | None = None) -> None:
    """Remove the operator's finalizer from every PodCliqueSet, after the operator is uninstalled.

    Sets can then be deleted without an operator. Pods keep running; an operator that is installed again
    continues to reconcile the sets.

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
