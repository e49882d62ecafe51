"""`grove detach`: workloads that outlive the operator."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.operator import finalizer_removal


def detach(*, kubeconfig: Path | None = None, context: str | None = None) -> None:
    """Let go of every PodCliqueSet, after the operator has gone for good.

    Takes the operator's finalizer off, so that sets can be deleted without an operator. Pods stay as they
    are, and an operator that comes back takes over where the last one stopped.

    Parameters
    ----------
    kubeconfig
        The way to the cluster; without it KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        A context of the kubeconfig other than its current one.
    """
    asyncio.run(_detach(config.load(kubeconfig, context)))


async def _detach(connection: config.Config) -> None:
    async with Client(connection) as client:
        async for name in finalizer_removal.remove_finalizers(client):
            sys.stdout.write(f"podcliqueset {name} detached\n")
