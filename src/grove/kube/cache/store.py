"""What a reflector fills: the objects of one resource, in whatever form they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol, TypeVar

from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable


class Metadata(Protocol):
    """The metadata that a watch needs: the identity of an object and its version."""

    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


class Decodable(Protocol):
    """An object as it is decoded."""

    @property
    def metadata(self) -> Metadata: ...


Decoded = TypeVar("Decoded", bound=Decodable)
Kept = TypeVar("Kept")


class Store(Protocol[Decoded, Kept]):
    """The objects of one resource. `Decoded` is what is read of an object, `Kept` what is stored of it."""

    @property
    def resource(self) -> Resource: ...

    @property
    def as_type(self) -> type[Decoded]: ...

    @property
    def namespace(self) -> str | None: ...

    @property
    def labels(self) -> str: ...

    @property
    def fields(self) -> str: ...

    @property
    def synced(self) -> asyncio.Event: ...

    @property
    def synced_or_absent(self) -> asyncio.Event: ...

    def __len__(self) -> int: ...

    def compact(self, new: Decoded) -> Kept:
        """What is kept of an object."""
        ...

    def apply_event(self, kind: str, new: Decoded) -> None:
        """Apply one watch event."""
        ...

    def apply_undecodable(self, kind: str, found: Undecodable) -> None:
        """Apply one watch event about an object that cannot be decoded."""
        ...

    def apply_bookmark(self, version: str) -> None:
        """The watch has sent everything up to this version."""
        ...

    def mark_unlistable(self, reason: str) -> None:
        """The server serves this resource and refuses to list it."""
        ...

    def replace(
        self, listed: Iterable[Kept], list_version: str, undecodable: Iterable[Undecodable] = ()
    ) -> None:
        """Apply a whole list, read at the given version."""
        ...

    def clear(self) -> None:
        """The cluster does not serve this resource (any more)."""
        ...
