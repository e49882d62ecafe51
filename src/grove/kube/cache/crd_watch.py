"""Waits until a resource is served: until its CRD is established, or the API server was restarted.

CRDs of other projects are installed and removed at run time. A reflector that gets a 404 waits here. If RBAC
permits to watch CRDs, the watch event ends the wait; if not, the wait ends after the given time and the
reflector tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from grove import timing
from grove.api.meta import Condition, ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource


class _Version(Struct, frozen=True, gc=False):
    name: str
    served: bool = False


class _Spec(Struct, frozen=True, gc=False):
    versions: tuple[_Version, ...] = ()


class _Status(Struct, frozen=True, gc=False):
    conditions: tuple[Condition, ...] | None = None
    """A definition that was just created has null here."""


class CustomResourceDefinition(Struct, frozen=True, gc=False):
    """The fields of a CustomResourceDefinition that say whether it is served; its schema is not decoded."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def declares(self, version: str) -> bool:
        """Whether that version is served, or will be."""
        return any(v.name == version and v.served for v in self.spec.versions)

    def serves(self, version: str) -> bool:
        """Whether requests for that version can succeed."""
        conditions = self.status.conditions or ()
        established = any(c.type == "Established" and c.status == "True" for c in conditions)
        return established and self.declares(version)


class CrdWatch:
    """A cache of CRDs, and the reflectors that wait for one."""

    def __init__(self) -> None:
        self.definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition)
        self.definitions.subscribe(self._notify)
        self._waiting: dict[Resource, set[asyncio.Future[None]]] = {}

    async def run(self, client: Client) -> None:
        """Watch the CRDs, until cancelled; where that is not permitted, `wait` works by time only."""
        await Reflector(client, self.definitions, on_disconnect=self._recheck_all).run()

    async def wait(self, resource: Resource, timeout: float) -> bool:
        """Return True when the resource's CRD becomes served, or False after `timeout` seconds.

        With a synced CRD watch an event is certain to come, so the timeout is much longer. Built-in kinds
        come with a server of another version or with other flags, so a lost connection also ends the wait.
        A CRD that exists already is waited for by time: the server takes a moment to serve it.
        """
        if self.definitions.synced.is_set() and not self._is_served(resource):
            timeout = timing.CRD_RECHECK
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
                _end_wait(waiting)

    def _recheck_all(self) -> None:
        """The server may be restarting: it may come back in another version, or with other flags."""
        for waiting in self._waiting.values():
            _end_wait(waiting)


def _end_wait(waiting: Iterable[asyncio.Future[None]]) -> None:
    for established_future in waiting:
        if not established_future.done():
            established_future.set_result(None)
