"""The state of a cluster at one moment: the objects of each kind as JSON, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import Raw, Struct

from grove.kube.client import decoding
from grove.kube.client.resource import Resource

T = TypeVar("T")


class ReadKind(Struct, frozen=True):
    """A kind to read, and which of its objects."""

    resource: Resource
    labels: str = ""
    fields: str = ""


class KindState(Struct, frozen=True):
    """The objects of one kind."""

    resource: Resource
    items: tuple[Raw, ...] = ()
    served: bool = True
    """Whether the cluster serves the kind; without that there are no objects of it."""
    problem: str = ""
    """Why the objects could not be read, such as a missing RBAC permission; empty if they were."""
    namespace: str = ""
    """The only namespace whose objects were read; empty: those of all namespaces."""
    undecodable: tuple[str, ...] = ()
    """The names of objects that are left out because they are none: a file may contain anything."""

    @property
    def listed(self) -> bool:
        """Whether the objects were read, at least those of one namespace."""
        return self.served and not self.problem


class UnreadKind(Struct, frozen=True):
    """A kind of which not everything could be read."""

    resource: str
    problem: str

    def __str__(self) -> str:
        return f"{self.resource}: {self.problem}"


class ClusterState(Struct, frozen=True):
    """All objects that planning and explaining read."""

    kinds: Mapping[Resource, KindState]
    taken_at: float = 0.0
    """In seconds since 1970."""
    server_version: str = ""
    """Such as `v1.37.1`; empty if it is not known."""
    source: str = ""
    """Where the state was read from, for people: the URL of a server, the path of a file, a shape."""

    def kind(self, resource: Resource) -> KindState:
        """The objects of a kind; one that was never asked for counts as not served."""
        return self.kinds.get(resource) or KindState(resource, served=False)

    def objects(self, resource: Resource, as_type: type[T]) -> Iterator[T]:
        """The objects of a kind. Objects that do not fit the type are skipped, as informer caches do. How
        deeply they nest was checked when they were read."""
        decode = decoding.decoder(as_type).decode
        for item in self.kind(resource).items:
            try:
                found: T = decode(item)
            except Exception:  # whatever a decoder raises, its cause is the text  # noqa: S112
                continue
            yield found

    @property
    def unread(self) -> tuple[UnreadKind, ...]:
        """What could not be read, with the reason."""
        kinds = sorted(self.kinds.values(), key=lambda each: each.resource.label)
        return tuple(
            UnreadKind(each.resource.label, problem) for each in kinds for problem in _problems(each)
        )


def _problems(kind: KindState) -> Iterator[str]:
    if kind.problem or kind.namespace:
        yield kind.problem or f"only those of namespace {kind.namespace} are known"
    if kind.undecodable:
        yield f"cannot be decoded: {', '.join(kind.undecodable)}"
