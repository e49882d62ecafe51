"""Mounts token Secrets as a kubelet does: once the Secret exists, and updated when it changes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from grove.api.meta import ObjectMeta
from grove.kube.cache.cache import Cache
from grove.local.private_files import write_private
from grove.local.standins.pod_status import InitContainerPod

NamespacedName = tuple[str, str]


class TokenSecret(Struct, frozen=True):
    """A Secret with the token of a ServiceAccount."""

    metadata: ObjectMeta
    data: dict[str, str] = field(default_factory=dict)


class TokenMounts:
    """The folders into which tokens are mounted."""

    def __init__(self, secrets: Cache[TokenSecret]) -> None:
        self._secrets = secrets
        self._folders: dict[NamespacedName, set[Path]] = {}
        self._changed = asyncio.Event()
        secrets.subscribe(self._on_secret)

    @asynccontextmanager
    async def token(self, pod: InitContainerPod, folder: Path) -> AsyncIterator[None]:
        """Mount the pod's token into a folder; waits until its Secret exists."""
        place = (pod.metadata.namespace, pod.token_secret)
        while (secret := self._secrets.get(*place)) is None:
            self._changed.clear()
            await self._changed.wait()
        _write(folder, secret)
        self._folders.setdefault(place, set()).add(folder)
        try:
            yield
        finally:
            self._folders[place].discard(folder)

    def _on_secret(self, _old: TokenSecret | None, new: TokenSecret | None) -> None:
        self._changed.set()
        if new is not None:
            for folder in self._folders.get((new.metadata.namespace, new.metadata.name), ()):
                _write(folder, new)


def _write(folder: Path, secret: TokenSecret) -> None:
    folder.mkdir(exist_ok=True)
    for name, value in secret.data.items():
        write_private(folder / name, base64.b64decode(value))
