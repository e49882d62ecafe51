"""Loads the fabric providers of the configuration, and checks at start whether the cluster has what the
automatic mode needs."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import entry_points
from typing import Any

import msgspec

from grove.api.configuration.types import DomainPacking, OnMissingDriver, OperatorConfiguration
from grove.fabrics.pod_claims import CLAIMS
from grove.fabrics.provider import Discovery, FabricDomainProvider, Severity
from grove.fabrics.registry import BUILT_IN, ENTRY_POINTS, Factory, Providers, providers
from grove.kube.client.client import Client
from grove.kube.client.resource import DEVICE_CLASSES, RESOURCE_SLICES, Resource, query
from grove.kube.discovery import served_resources
from grove.kube.errors import KubeError, NotFound
from grove.logger import get_logger

log = get_logger("grove.operator")

PREFLIGHT_FAILED = "MNNVL preflight check failed"


class PreflightError(Exception):
    """The cluster lacks what the automatic mode needs; the message says what, and what the user can do."""


def load_providers(config: OperatorConfiguration) -> Providers:
    """The providers that a configuration lists. Raises ConfigurationError."""
    network = config.network
    return load_listed(config.fabrics, auto=network.auto_mnnvl_enabled, packing=network.pack_domains)


def installed_vendors() -> tuple[str, ...]:
    """All vendors whose providers are installed: built in, or from other packages."""
    return tuple(dict.fromkeys((*BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS)))))


def load_listed(
    vendors: Collection[str], *, auto: bool = False, packing: DomainPacking = DomainPacking.PREFERRED
) -> Providers:
    """The providers of some vendors, those of other packages found by entry point; `auto`: one of them must
    support automatic domains; `packing`: for sets that do not say it. Raises ConfigurationError."""
    others: dict[str, Factory] = {
        point.name: lambda point=point: _load_provider(point)  # type: ignore[misc]
        for point in entry_points(group=ENTRY_POINTS)
        if point.name in vendors
    }
    return providers(vendors, others, auto=auto, packing=packing)


def _load_provider(point: Any) -> FabricDomainProvider:
    provider: FabricDomainProvider = point.load()()
    return provider


async def preflight(client: Client, provider: FabricDomainProvider, policy: OnMissingDriver) -> None:
    """Check before any write whether the cluster supports the automatic mode. Raises PreflightError, unless
    the policy is to warn."""
    try:
        await _check(client, provider)
    except PreflightError as problem:
        if policy is OnMissingDriver.FAIL:
            raise
        log.warning(PREFLIGHT_FAILED, key=provider.vendor, action="continue", reason=str(problem))


async def _check(client: Client, provider: FabricDomainProvider) -> None:
    try:
        discovery = await _discover(client, provider)
    except KubeError as problem:
        raise PreflightError(f"cannot read which APIs the cluster serves: {problem}") from None
    for finding in provider.preflight(discovery):
        if finding.severity is Severity.FATAL:
            raise PreflightError(finding.message)
        log.warning("MNNVL preflight check", key=provider.vendor, action="continue", reason=finding.message)
    log.info(
        "MNNVL preflight check passed", key=provider.vendor, action="start", reason=provider.api.crd_name
    )


async def _discover(client: Client, provider: FabricDomainProvider) -> Discovery:
    """Read what is served, API group by API group: a group that is down does not affect the others."""
    served = await _served(client, provider.api.group, provider.api.version)
    if not served:  # other versions are of interest only for the message
        for version in await _versions(client, provider.api.group):
            served |= await _served(client, provider.api.group, version)
    served |= await _served(client, CLAIMS.group, CLAIMS.version)
    classes = await _names(client, DEVICE_CLASSES)
    slices = await _names(client, RESOURCE_SLICES, fieldSelector=f"spec.driver={provider.driver}", limit=1)
    return Discovery(
        frozenset(served),
        None if classes is None else frozenset(classes),
        None if slices is None or not provider.driver else bool(slices),
    )


async def _served(client: Client, group: str, version: str) -> set[tuple[str, str, str]]:
    """The resources of one version of an API group."""
    return {(group, version, name) for name in await served_resources(client, group, version)}


async def _versions(client: Client, group: str) -> list[str]:
    try:
        answer = await client.raw("GET", f"/apis/{group}")
    except NotFound:
        return []
    return [str(each["version"]) for each in msgspec.json.decode(answer.body).get("versions") or []]


async def _names(client: Client, resource: Resource, **parameters: object) -> list[str] | None:
    """The names of objects whose absence is only a warning; None if they cannot be listed."""
    try:
        answer = await client.raw("GET", resource.path() + query(parameters))
    except KubeError:
        return None
    found = msgspec.json.decode(answer.body).get("items") or []
    return [str(each["metadata"]["name"]) for each in found]
