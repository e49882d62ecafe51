"""The pieces of work: each key names a part of the world that one plan brings in order."""

from __future__ import annotations

from typing import NamedTuple

from grove.api.meta import ObjectMeta
from grove.api.naming import labels


class SetKey(NamedTuple):
    """A set as a whole: its finalizer, its status, its end."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ReplicaKey(NamedTuple):
    """One replica of a set, with all that belongs to it."""

    namespace: str
    set_name: str
    replica: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.set_name}/{self.replica}"


class PlacementKey(NamedTuple):
    """The places of all gangs: there is one of it, for they compete for the same nodes."""

    def __str__(self) -> str:
        return "placement"


class TopologyKey(NamedTuple):
    """A topology, and what schedulers have of it: of either kind, as both share their names."""

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


WorkloadKey = SetKey | ReplicaKey
Key = WorkloadKey | PlacementKey | TopologyKey | DomainKey


def parent_of(key: WorkloadKey) -> SetKey:
    """The set that a key is about."""
    return SetKey(key.namespace, key.set_name) if isinstance(key, ReplicaKey) else key


def tenant_of(key: Key) -> tuple[str, str]:
    """Keys that share workers while their writes are slow: those of one kind and namespace. Sets have a share
    of their own: they report what their replicas wait for."""
    namespace = "" if isinstance(key, PlacementKey | TopologyKey) else key.namespace
    return type(key).__name__, namespace


def replica_of(metadata: ObjectMeta) -> ReplicaKey | None:
    """The replica that an object's labels put it into; None if they do not say."""
    carried = metadata.labels
    set_name, index = carried.get(labels.PART_OF), carried.get(labels.SET_REPLICA, "")
    if not set_name or not index.isdecimal() or carried.get(labels.MANAGED_BY) != labels.OPERATOR:
        return None
    return ReplicaKey(metadata.namespace, set_name, int(index))


def set_of(metadata: ObjectMeta) -> SetKey | None:
    """The set that an object's labels put it into."""
    set_name = metadata.labels.get(labels.PART_OF)
    return SetKey(metadata.namespace, set_name) if set_name else None
