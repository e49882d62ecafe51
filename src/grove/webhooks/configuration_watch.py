"""Watches our webhook configurations: which host the API server calls, and which CA it trusts.

Each is watched by its name, so that the RBAC permission can be limited to these names. A configuration that
does not exist is no error; its creation, and a removal of its caBundle, arrive as watch events.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.errors import Forbidden, KubeError
from grove.logger import get_logger
from grove.webhooks.registrations import Registration

log = get_logger("grove.webhooks")


class _Service(Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _ClientConfig(Struct, frozen=True, rename="camel"):
    url: str = ""
    service: _Service | None = None
    ca_bundle: str = ""


class _Webhook(Struct, frozen=True, rename="camel"):
    name: str
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(Struct, frozen=True):
    metadata: ObjectMeta
    webhooks: tuple[_Webhook, ...] = ()


class WebhookClientConfig(Struct, frozen=True):
    """How an API server calls a webhook: the host, and the CA that it trusts (empty: its system's roots)."""

    host: str
    ca_bundle: bytes


class WebhookConfigurations:
    """The caches of all our webhook configurations."""

    def __init__(self, registrations: Iterable[Registration]) -> None:
        self.changed = asyncio.Event()
        self._forbidden = False
        self._caches = [
            Cache(each.resource, _Configuration, fields=f"metadata.name={each.name}")
            for each in registrations
        ]
        for cache in self._caches:
            cache.subscribe(lambda *_: self.changed.set())

    async def watch(self, client: Client, *, needed: bool = True) -> None:
        """Run the reflectors, until cancelled. If the configurations are not `needed`, a missing RBAC
        permission is logged and accepted."""
        self._forbidden = not needed and await self._is_forbidden(client)
        if self._forbidden:
            reason = "forbidden by RBAC: whether the API server trusts the certificate is not checked"
            log.warning("not watched", key="webhook configurations", action="continue", reason=reason)
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as tasks:
            for cache in self._caches:
                tasks.create_task(Reflector(client, cache).run())

    async def _is_forbidden(self, client: Client) -> bool:
        for cache in self._caches:
            try:
                await client.list(cache.resource, as_type=_Configuration, fields=cache.fields)
            except Forbidden:
                return True
            except KubeError:
                return False  # the reflector retries
        return False

    async def synced(self) -> None:
        """Wait until all caches are synced."""
        for cache in self._caches:
            await cache.synced.wait()

    @property
    def ready(self) -> bool:
        """Whether all caches are synced, or reading them is forbidden."""
        return self._forbidden or all(cache.synced.is_set() for cache in self._caches)

    @property
    def present(self) -> list[tuple[Resource, str]]:
        """The configurations that exist."""
        return [(cache.resource, found.metadata.name) for cache in self._caches for found in cache]

    def __iter__(self) -> Iterator[WebhookClientConfig]:
        """Each distinct client configuration of the webhooks."""
        webhooks = (webhook for cache in self._caches for found in cache for webhook in found.webhooks)
        client_configs = (
            WebhookClientConfig(_host(each.client_config), _ca_bundle(each.client_config))
            for each in webhooks
        )
        return iter(dict.fromkeys(client_configs))


def _host(client: _ClientConfig) -> str:
    if client.service is not None:
        return f"{client.service.name}.{client.service.namespace}.svc"
    try:
        return urlsplit(client.url).hostname or ""
    except ValueError:
        return ""


def _ca_bundle(client: _ClientConfig) -> bytes:
    try:
        return base64.b64decode(client.ca_bundle, validate=True)
    except binascii.Error:
        return b""
