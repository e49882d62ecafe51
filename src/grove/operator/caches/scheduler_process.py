"""Which process is the scheduler, by its Lease: before Kubernetes 1.37 a new one does not know which gated
pods are nominated to which nodes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from msgspec import Struct

from grove import timing
from grove.api.configuration.default_scheduler import SchedulerLease
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client import decoding
from grove.kube.client.client import Client
from grove.kube.client.resource import LEASES
from grove.kube.errors import KubeError
from grove.kube.leader.lease import Lease
from grove.logger import get_logger

log = get_logger("grove.operator")


class ServerVersion(Struct, frozen=True):
    """The reply of /version. Providers write a minor version such as `36+`."""

    major: str = ""
    minor: str = ""

    @property
    def keeps_nominations(self) -> bool:
        """Whether a scheduler of this version reads the nominations of gated pods when it starts."""
        return (_number(self.major), _number(self.minor)) >= (1, 37)


def _number(written: str) -> int:
    found = re.match(r"\d+", written)
    return int(found[0]) if found else 0


class SchedulerProcess:
    """The process that is the leader of the schedulers."""

    def __init__(self, lease: SchedulerLease) -> None:
        self._name = (lease.namespace, lease.name)
        self._leases: Cache[Lease] = Cache(
            LEASES, Lease, namespace=lease.namespace, fields=f"metadata.name={lease.name}"
        )
        self._leases.subscribe(self._on_lease)
        self._keeps_nominations = False
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the process changes."""
        self._listeners.append(listener)

    @property
    def identity(self) -> str | None:
        """The identity of the process; empty if it is not known, because the Lease does not exist or must not
        be read. None if it does not matter: the scheduler keeps nominations when it restarts."""
        return None if self._keeps_nominations else _holder(self._leases.get(*self._name))

    async def run(self, client: Client) -> None:
        """Watch the Lease if the version of Kubernetes needs it, until cancelled."""
        self._keeps_nominations = (await _version(client)).keeps_nominations
        if not self._keeps_nominations:
            await Reflector(client, self._leases).run()

    def _on_lease(self, old: Lease | None, new: Lease | None) -> None:
        if _holder(old) != _holder(new):
            for listener in self._listeners:
                listener()


def _holder(lease: Lease | None) -> str:
    return (lease.spec.holder_identity or "") if lease is not None else ""


async def _version(client: Client) -> ServerVersion:
    """The version of the API server, as soon as it answers."""
    while True:
        try:
            reply = await client.raw("GET", "/version")
            version: ServerVersion = decoding.decode_text(reply.body, ServerVersion)
        except (KubeError, ValueError) as problem:
            log.warning("version not read", key="operator", action="retry", reason=str(problem))
            await asyncio.sleep(timing.VERSION_RETRY)
        else:
            return version
