"""Loads the fabric providers of the configuration, and checks at start whether the cluster has what the
automatic mode needs."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import msgspec
import structlog

from grove.api.configuration.types import OperatorConfiguration
from grove.fabrics.pod_claims import CLAIMS
from grove.fabrics.provider import Discovery, FabricDomainProvider, Severity
from grove.fabrics.registry import ENTRY_POINTS, Factory, Providers, providers
from grove.kube.client.client import Client
from grove.kube.client.resource import DEVICE_CLASSES, RESOURCE_SLICES, Resource, query
from grove.kube.errors import KubeError, NotFound

log = structlog.get_logger("grove.operator")

PREFLIGHT_FAILED = "MNNVL preflight check failed"


class PreflightError(Exception):
    """The cluster lacks what the automatic mode needs; the message says what, and what the user can do."""


def load_providers(config: OperatorConfiguration) -> Providers:
    """The providers that a configuration lists, those of other projects found by entry point. Raises
    ConfigurationError."""
    others: dict[str, Factory] = {
        point.name: lambda point=point: _load_provider(point)  # type: ignore[misc]
        for point in entry_points(group=ENTRY_POINTS)
        if point.name in config.fabrics
    }
    return providers(config.fabrics, others, auto=config.network.auto_mnnvl_enabled)


def _load_provider(point: Any) -> FabricDomainProvider:
    provider: FabricDomainProvider = point.load()()
    return provider


async def preflight(client: Client, provider: FabricDomainProvider) -> None:
    """Check before any write whether the cluster supports the automatic mode. Raises PreflightError."""
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
    served: set[tuple[str, str, str]] = set()
    for kind in (provider.api, CLAIMS):
        try:
            answer = await client.raw("GET", f"/apis/{kind.api_version}")
        except NotFound:
            continue
        found = msgspec.json.decode(answer.body).get("resources") or []
        served |= {(kind.group, kind.version, str(each.get("name"))) for each in found}
    classes = await _names(client, DEVICE_CLASSES)
    slices = await _names(client, RESOURCE_SLICES, fieldSelector=f"spec.driver={provider.driver}", limit=1)
    return Discovery(
        frozenset(served),
        None if classes is None else frozenset(classes),
        None if slices is None or not provider.driver else bool(slices),
    )


async def _names(client: Client, resource: Resource, **parameters: object) -> list[str] | None:
    """The names of objects whose absence is only a warning; None if they cannot be listed."""
    try:
        answer = await client.raw("GET", resource.path() + query(parameters))
    except KubeError:
        return None
    found = msgspec.json.decode(answer.body).get("items") or []
    return [str(each["metadata"]["name"]) for each in found]
