"""Whom the API server calls and whom it trusts then: our webhook configurations, watched.

Each is watched by its name, so that the right to do so can be for these names only. What is not there is
nobody's call; when it comes, or when somebody wipes the trust out of it, that is an event.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import structlog
from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.errors import Forbidden, KubeError
from grove.webhooks.registrations import Registration

log = structlog.get_logger("grove.webhooks")


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
    """An API server's view of us: the name that it calls, and whom it trusts (empty: its system's roots)."""

    host: str
    ca_bundle: bytes


class WebhookConfigurations:
    """All that is known of who calls."""

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
        """Keep in step with the cluster, until cancelled. If they are not `needed`, a lack of rights to see
        them is taken for an answer."""
        self._forbidden = not needed and await self._is_forbidden(client)
        if self._forbidden:
            reason = "no right to see them: whom the API server trusts is not checked"
            log.warning("not watched", key="webhook configurations", action="go on", reason=reason)
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
                return False  # the watch will go on asking
        return False

    async def synced(self) -> None:
        """Wait until all is known."""
        for cache in self._caches:
            await cache.synced.wait()

    @property
    def ready(self) -> bool:
        """Whether all is known that we may know."""
        return self._forbidden or all(cache.synced.is_set() for cache in self._caches)

    @property
    def present(self) -> list[tuple[Resource, str]]:
        """The configurations that exist."""
        return [(cache.resource, found.metadata.name) for cache in self._caches for found in cache]

    def __iter__(self) -> Iterator[WebhookClientConfig]:
        """Each way in which we are called, once."""
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
