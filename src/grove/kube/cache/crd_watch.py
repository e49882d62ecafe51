"""Tells when a resource that was not served begins to be: its CRD has been established.

The CRDs of others come and go while we run. Where we may watch CRDs, whoever waits is woken by the event.
Where we may not, waiting is for the given time only, and the caller asks again.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from grove.api.meta import Condition, ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource

# Long enough to count as standing still, short enough for a server that was upgraded under us.
_RECHECK_AFTER = 600.0


class _Version(Struct, frozen=True, gc=False):
    name: str
    served: bool = False


class _Spec(Struct, frozen=True, gc=False):
    versions: tuple[_Version, ...] = ()


class _Status(Struct, frozen=True, gc=False):
    conditions: tuple[Condition, ...] | None = None
    """A definition that was just made has null here."""


class CustomResourceDefinition(Struct, frozen=True, gc=False):
    """As much of a CustomResourceDefinition as tells whether it is served; its schema is skipped over."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def serves(self, version: str) -> bool:
        """Whether requests for that version can succeed."""
        conditions = self.status.conditions or ()
        established = any(c.type == "Established" and c.status == "True" for c in conditions)
        return established and any(v.name == version and v.served for v in self.spec.versions)


class CrdWatch:
    """A cache of CRDs, and those who wait for one."""

    def __init__(self) -> None:
        self.definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition)
        self.definitions.subscribe(self._notify)
        self._waiting: dict[Resource, set[asyncio.Future[None]]] = {}

    async def run(self, client: Client) -> None:
        """Watch the CRDs, for ever; harmless where that is not permitted."""
        await Reflector(client, self.definitions).run()

    async def wait(self, resource: Resource, timeout: float) -> bool:
        """Return True when the resource's CRD arrives, or False after `timeout` seconds.

        With the CRDs in view there is nothing to look for in between, so that wait is as good as endless;
        only built-in kinds, which come with another server, are looked for again now and then. A CRD that
        is there already (the server takes a moment to serve it) is waited for by time.
        """
        if self.definitions.synced.is_set() and not self._is_served(resource):
            timeout = _RECHECK_AFTER
        try:
            async with asyncio.timeout(timeout):
                await self._wait_for_crd(resource)
        except TimeoutError:
            return False
        return True

    async def _wait_for_crd(self, resource: Resource) -> None:
        established_future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(resource, set())
        waiting.add(established_future)
        try:
            await established_future
        finally:
            waiting.discard(established_future)

    def _is_served(self, resource: Resource) -> bool:
        found = self.definitions.get("", resource.label)
        return found is not None and found.serves(resource.version)

    def _notify(self, old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        for resource, waiting in self._waiting.items():
            if new is None or new.metadata.name != resource.label or not new.serves(resource.version):
                continue
            if old is None or not old.serves(resource.version):
                for established_future in waiting:
                    if not established_future.done():
                        established_future.set_result(None)
