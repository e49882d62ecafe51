"""`grove detach`: removes the operator's finalizers from all sets and fabric domains, and its scheduling
gates from all pods, so that workloads outlive the operator."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from grove.api.configuration.loading import ConfigurationError
from grove.api.naming import well_known
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.registry import Providers
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError, KubeError
from grove.operator import fabric_providers, pod_release
from grove.operator.caches.resources import external_resource, resource_of
from grove.operator.finalizer_removal import remove_finalizers
from grove.webhooks.conversion.registration import CRD, unregister


def detach(
    *,
    fabrics: str | None = None,
    namespaces: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Remove the operator's finalizers and scheduling gates, after the operator is uninstalled.

    Sets and fabric domains can then be deleted without an operator, and pods that waited for the operator are
    left to the scheduler, one by one; no nodes stay reserved for them. DynamoGraphDeployments are no longer
    converted between their versions: both are served as they are stored, in v1beta1. Pods keep running; an
    operator that is installed again continues to reconcile the sets.

    Parameters
    ----------
    fabrics
        Vendors of the fabric domains, separated by commas, as in `fabrics` of the configuration; default: all
        that are installed.
    namespaces
        Namespaces, separated by commas, of an operator that was installed for these only; default: all.
    kubeconfig
        Path of a kubeconfig; default: KUBECONFIG, the pod's service account, or ~/.kube/config.
    context
        Context of the kubeconfig; default: its current one.
    """
    listed = [each for each in (namespaces or "").split(",") if each]
    asyncio.run(detach_all(config.load(kubeconfig, context), _providers(fabrics), listed or [None]))


def _providers(fabrics: str | None) -> Providers:
    listed = fabric_providers.installed_vendors() if fabrics is None else fabrics.split(",")
    try:
        return fabric_providers.load_listed([vendor for vendor in listed if vendor])
    except ConfigurationError as error:
        raise ConfigError(f"--{error}") from None


async def detach_all(
    connection: config.Config, fabrics: Providers, namespaces: Iterable[str | None] = (None,)
) -> None:
    """Detach the CRD of DynamoGraphDeployments, all sets and pods, and the domains of these vendors. Raises
    KubeError at the end if the CRD or the domains of one vendor could not be detached, for example without
    the right to list them. An operator of some namespaces has not changed the CRD."""
    failures: list[str] = []
    async with Client(connection) as client:
        for namespace in namespaces:
            if namespace is None:
                failures += [each async for each in _detach_definition(client)]
            failures += [each async for each in _detach(client, fabrics, namespace)]
    if failures:
        raise KubeError("; ".join(failures))


async def _detach_definition(client: Client) -> AsyncIterator[str]:
    """Reset the conversion of the CRD. Yields why that was not possible."""
    try:
        if await unregister(client):
            sys.stdout.write(f"customresourcedefinition {CRD} detached\n")
    except KubeError as error:  # without the right to patch it, the finalizers are removed nevertheless
        yield str(error)


async def _detach(client: Client, fabrics: Providers, namespace: str | None) -> AsyncIterator[str]:
    """Detach what is in a namespace; None: in all. Yields why domains of a vendor could not be detached."""
    sets = resource_of(PodCliqueSet.KIND)
    async for name in remove_finalizers(client, sets, well_known.SET_FINALIZER, namespace):
        sys.stdout.write(f"podcliqueset {name} detached\n")
    async for name in pod_release.release_pods(client, namespace):
        sys.stdout.write(f"pod {name} released\n")
    finalizer = well_known.COMPUTE_DOMAIN_FINALIZER
    for provider in fabrics:
        domains = external_resource(provider.api)
        try:  # the domains of another vendor, for which there may be no right, do not keep those of this
            async for name in remove_finalizers(client, domains, finalizer, namespace):
                sys.stdout.write(f"{provider.api.name.lower()} {name} detached\n")
        except KubeError as error:
            yield str(error)
