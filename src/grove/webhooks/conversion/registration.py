"""Registers the conversion webhook in the CRD of DynamoGraphDeployments, and removes it.

The API server calls it at the address, and with the CA, of the defaulting webhook of the same kind: so there
is one place to configure them, and certificate rotation needs to know only that one. The CRD is watched: a
conversion that another writer removed is an event.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from grove import timing
from grove.api.meta import ObjectMeta
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.graph import mapping
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import JSON, Client, Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS
from grove.kube.client.retry import Backoff
from grove.kube.errors import Conflict, KubeError, NotFound
from grove.logger import get_logger
from grove.webhooks.registrations import CONVERT_GRAPH, DEFAULT_GRAPH, Path

Body = dict[str, Any]
CRD = DynamoGraphDeployment.KIND.crd_name
_NONE: Body = {"strategy": "None"}
log = get_logger("grove.webhooks")


class _Spec(Struct, frozen=True):
    conversion: dict[str, Any] | None = None


class _Definition(Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


class _Configuration(Struct, frozen=True):
    metadata: ObjectMeta
    webhooks: tuple[dict[str, Any], ...] = ()


class ConversionRegistration:
    """Keeps the conversion of the CRD as the defaulting webhook is configured; in every operator replica.
    `waits_for_ca`: the operator writes the caBundle itself; a configuration without one is not complete."""

    def __init__(self, *, waits_for_ca: bool) -> None:
        self._waits_for_ca = waits_for_ca
        self._definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, _Definition, fields=f"metadata.name={CRD}")
        self._configurations = Cache(
            DEFAULT_GRAPH.resource, _Configuration, fields=f"metadata.name={DEFAULT_GRAPH.name}"
        )
        self._changed = asyncio.Event()
        self._definitions.subscribe(lambda *_: self._changed.set())
        self._configurations.subscribe(lambda *_: self._changed.set())

    async def run(self, client: Client) -> None:
        """Watch both, and patch the CRD whenever it differs, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Reflector(client, self._definitions).run())
            tasks.create_task(Reflector(client, self._configurations).run())
            await self._definitions.synced.wait()
            await self._configurations.synced.wait()
            await self._follow(client)

    async def _follow(self, client: Client) -> None:
        backoff, rng, failures = Backoff(*timing.CERTIFICATE_BACKOFF), random.Random(), 0  # noqa: S311 - jitter
        while True:
            self._changed.clear()
            try:
                await self._register(client)
            except Conflict:
                pass  # changed by another writer: its event comes next
            except KubeError as problem:
                reason = str(problem)
                log.warning("conversion not registered", key=CRD, action="retry", reason=reason)
                await asyncio.sleep(backoff.pause(failures, rng))
                failures += 1
                continue
            failures = 0
            await self._changed.wait()
            # Another writer may keep changing it.
            await asyncio.sleep(timing.CONVERSION_INTERVAL)

    async def _register(self, client: Client) -> None:
        definition, configuration = (
            next(iter(self._definitions), None),
            next(iter(self._configurations), None),
        )
        if definition is None or configuration is None or not configuration.webhooks:
            return
        known, client_config = definition.spec.conversion or {}, configuration.webhooks[0].get("clientConfig")
        wanted = conversion(mapping(client_config))
        if self._waits_for_ca and not mapping(client_config).get("caBundle"):
            return
        if known == wanted or is_foreign(known):
            return
        await _patch(client, definition.metadata.resource_version, wanted)
        log.info("conversion registered", key=CRD, action="patch", reason=DEFAULT_GRAPH.name)


def conversion(defaulting: Body) -> Body:
    """The conversion of the CRD, from the `clientConfig` of the defaulting webhook."""
    client: Body = dict(defaulting)
    if isinstance(service := defaulting.get("service"), dict):
        client["service"] = {**service, "path": CONVERT_GRAPH}
    if isinstance(url := defaulting.get("url"), str):
        client["url"] = url.removesuffix(Path.DEFAULT_GRAPH) + CONVERT_GRAPH
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def is_ours(found: Body) -> bool:
    """Whether a conversion is that of a Grove operator: by its path, which no other operator has. Dynamo's is
    `/convert`."""
    client = mapping(mapping(found.get("webhook")).get("clientConfig"))
    url = client.get("url")
    try:
        by_url = urlsplit(url).path.endswith(CONVERT_GRAPH) if isinstance(url, str) else False
    except ValueError:
        return False
    return by_url or mapping(client.get("service")).get("path") == CONVERT_GRAPH


def is_foreign(found: Body) -> bool:
    """Whether a conversion is that of another operator."""
    return found.get("strategy") == "Webhook" and not is_ours(found)


async def unregister(client: Client) -> bool:
    """Reset the conversion of the CRD if it is ours: no operator is to answer. Returns whether it was."""
    for _ in range(timing.CERTIFICATE_ATTEMPTS):
        try:
            found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD, as_type=dict)
        except NotFound:
            return False
        if not is_ours(mapping(found["spec"].get("conversion"))):
            return False
        try:
            await _patch(client, found["metadata"]["resourceVersion"], _NONE)
        except Conflict:
            continue
        return True
    raise KubeError(f"CustomResourceDefinition {CRD} keeps changing: stop every operator first")


async def _patch(client: Client, version: str, wanted: Body) -> None:
    patch: list[Body] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/spec/conversion", "value": wanted},
    ]
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, CRD, patch, kind=JSON, as_type=Object)
