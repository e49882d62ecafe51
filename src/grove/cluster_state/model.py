"""The state of a cluster at one moment: the objects of each kind as JSON, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from grove.api.formats.name_list import name_list
from grove.kube.client import decoding
from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable, undecodable

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
    """The only namespace whose objects were read, or should be; empty: those of all namespaces. Several are
    separated by a comma and a space."""
    undecodable: tuple[str, ...] = ()
    """The names of objects that are left out because they cannot be decoded: a file may contain anything."""

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


def unread_lines(unread: Iterable[UnreadKind]) -> tuple[str, ...]:
    """What could not be read, for people. Kinds with the same reason share a line, those of Kubernetes' core
    first: a user with few rights misses nearly all."""
    alike: dict[str, list[UnreadKind]] = {}
    for each in unread:
        alike.setdefault(each.problem.replace(f" {each.resource} ", " them "), []).append(each)
    return tuple(_line(problem, found) for problem, found in alike.items())


def _line(problem: str, found: list[UnreadKind]) -> str:
    if len(found) == 1:
        return str(found[0])
    names = sorted((each.resource for each in found), key=lambda name: ("." in name, name))
    return f"{problem}: {', '.join(names)}"


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

    def objects(
        self, resource: Resource, as_type: type[T], skipped: list[Undecodable] | None = None
    ) -> Iterator[T]:
        """The objects of a kind. Objects that do not fit the type are skipped, as informer caches do, and
        added to `skipped`. How deeply they nest was checked when they were read."""
        decode = decoding.decoder(as_type).decode
        for item in self.kind(resource).items:
            try:
                found: T = decode(item)
            except Exception as problem:  # whatever a decoder raises, its cause is the text
                if skipped is not None:
                    skipped.append(undecodable(bytes(item), problem))
                continue
            yield found

    def with_skipped(self, skipped: Mapping[Resource, Iterable[Undecodable]]) -> ClusterState:
        """The state, in which these objects are named as undecodable."""
        kinds = {
            resource: replace(known, undecodable=_merged(known.undecodable, map(object_name, found)))
            for resource, found in skipped.items()
            if (known := self.kinds.get(resource)) is not None
        }
        return replace(self, kinds={**self.kinds, **kinds})

    @property
    def unread(self) -> tuple[UnreadKind, ...]:
        """What could not be read, with the reason."""
        kinds = sorted(self.kinds.values(), key=lambda each: each.resource.label)
        return tuple(
            UnreadKind(each.resource.label, problem) for each in kinds for problem in _problems(each)
        )


def object_name(found: Undecodable) -> str:
    """The name of an object that cannot be decoded, for people."""
    return "/".join(filter(None, found.key)) or "an object without a name"


def _merged(known: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *more)))


def _problems(kind: KindState) -> Iterator[str]:
    if kind.problem or kind.namespace:
        yield kind.problem or f"only those of namespace {kind.namespace} are known"
    if kind.undecodable:
        yield f"cannot be decoded: {name_list(kind.undecodable)}"
