"""The keys of the work queue: each names the objects that one plan reconciles."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import labels


class SetKey(NamedTuple):
    """A set as a whole: its finalizer, its status, its deletion."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ReplicaKey(NamedTuple):
    """One replica of a set, with all objects that belong to it."""

    namespace: str
    set_name: str
    replica: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.set_name}/{self.replica}"


class PlacementKey(NamedTuple):
    """The placement of all gangs: a single key, because gangs compete for the same nodes."""

    def __str__(self) -> str:
        return "placement"


class TopologyKey(NamedTuple):
    """A topology of either kind, with the topology objects of schedulers; both kinds share their names."""

    name: str

    def __str__(self) -> str:
        return f"topology {self.name}"


class DomainKey(NamedTuple):
    """A fabric domain, which several sets may share."""

    vendor: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.vendor} domain {self.namespace}/{self.name}"


class GraphKey(Struct, frozen=True, gc=False, order=True):
    """A DynamoGraphDeployment with all objects that are created for it. Not a tuple: that would be equal to
    the `SetKey` of the same name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"DynamoGraphDeployment {self.namespace}/{self.name}"


WorkloadKey = SetKey | ReplicaKey
Key = WorkloadKey | PlacementKey | TopologyKey | DomainKey | GraphKey


def parent_of(key: WorkloadKey) -> SetKey:
    """The set of a key."""
    return SetKey(key.namespace, key.set_name) if isinstance(key, ReplicaKey) else key


def tenant_of(key: Key) -> tuple[str, str]:
    """The tenant of a key in the work queue: keys of one type and namespace share workers while their writes
    are slow. Sets have workers of their own: they report what their replicas wait for."""
    return type(key).__name__, namespace_of(key)


def namespace_of(key: Key) -> str:
    """The namespace of a key; empty if what it names has none."""
    return "" if isinstance(key, PlacementKey | TopologyKey) else key.namespace


def replica_of(metadata: ObjectMeta) -> ReplicaKey | None:
    """The replica that an object's labels name; None if they name none."""
    found = metadata.labels
    set_name, index = found.get(labels.PART_OF), found.get(labels.SET_REPLICA, "")
    if not set_name or not index.isdecimal() or found.get(labels.MANAGED_BY) != labels.OPERATOR:
        return None
    return ReplicaKey(metadata.namespace, set_name, int(index))


def set_of(metadata: ObjectMeta) -> SetKey | None:
    """The set that an object's labels name; None if they name none."""
    set_name = metadata.labels.get(labels.PART_OF)
    return SetKey(metadata.namespace, set_name) if set_name else None
