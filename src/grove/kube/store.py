"""What the executor needs of a cache: the type to read replies as, and a place to put them."""

from __future__ import annotations

from typing import Any, Protocol

from grove.kube.resource import Resource
from grove.kube.wire import Object


class Store(Protocol):
    """Learns what writes and reads have shown."""

    def type_of(self, resource: Resource) -> type[Any]:
        """The type that objects of this resource are read as; it has `metadata`."""
        ...

    def put(self, resource: Resource, obj: Any) -> None:
        """The object as the server has it now, unless something newer is known."""
        ...

    def gone(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """The object with this UID does not exist any more."""
        ...


class Forgetful:
    """A store that keeps nothing, for those who write without a cache."""

    def type_of(self, resource: Resource) -> type[Any]:  # noqa: ARG002 - all are alike to it
        return Object

    def put(self, resource: Resource, obj: Any) -> None:
        """Learn nothing."""

    def gone(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Learn nothing."""
