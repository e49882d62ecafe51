"""`grove crds`: prints the CustomResourceDefinitions of the chart, or applies them to a cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import yaml

from grove.api.crds import crd
from grove.dynamo.api import crd_definitions
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError
from grove.operator.crds import apply_crds


class _Plain(yaml.CSafeDumper):
    """Writes repeated schemas in full: anchors and aliases would be shorter and harder to read."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def crds(
    *, dynamo: bool = False, apply: bool = False, kubeconfig: Path | None = None, context: str | None = None
) -> None:
    """Print the CustomResourceDefinitions, or with --apply create or update those of a cluster.

    Parameters
    ----------
    dynamo
        The CRDs of DynamoGraphDeployments instead, which the operator reconciles with dynamo.enabled.
    apply
        Create or update the CRDs in the cluster, and wait until they are served.
    kubeconfig
        With --apply: path of a kubeconfig; default: KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        With --apply: context of the kubeconfig; default: its current one.
    """
    for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
        if value is not None and not apply:
            raise ConfigError(
                f"{option} {value}: the CRDs are printed, and no cluster is used: add --apply, or pass the "
                "output to kubectl apply --server-side -f -"
            )
    wanted = crd_definitions.all_definitions() if dynamo else crd.all_definitions()
    if apply:
        asyncio.run(_apply(config.load(kubeconfig, context), wanted))
    else:
        sys.stdout.write("".join(map(render, wanted)))


async def _apply(connection: config.Config, wanted: list[dict[str, Any]]) -> None:
    async with Client(connection) as client:
        async for applied in apply_crds(client, wanted):
            sys.stdout.write(f"{applied.name} {applied.action}\n")


def render(definition: dict[str, Any]) -> str:
    """One YAML document, the same on every run."""
    return "---\n" + yaml.dump(definition, Dumper=_Plain, width=110)
