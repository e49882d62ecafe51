"""Claims as the driver reads them, and the nodes of a domain's status as it writes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
from grove.api.types.kubernetes_objects import Node
from grove.local.standins.dra import objects

Entry = dict[str, Any]


class Consumer(Struct, frozen=True):
    """A consumer of a claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class _ClaimStatus(Struct, frozen=True, rename="camel"):
    allocation: dict[str, Any] | None = None
    reserved_for: tuple[Consumer, ...] = ()


class DomainResourceClaim(Struct, frozen=True):
    """A ResourceClaim."""

    metadata: ObjectMeta
    status: _ClaimStatus = _ClaimStatus()

    @property
    def domain(self) -> str:
        """The UID of the ComputeDomain that the claim is for; empty if it is for another device."""
        for config in self._devices("config"):
            opaque = config.get("opaque") or {}
            if opaque.get("driver") == objects.DRIVER:
                return str((opaque.get("parameters") or {}).get("domainID", ""))
        return ""

    @property
    def node(self) -> str:
        """The node of the allocation: each node is a pool of its own."""
        results = (each for each in self._devices("results") if each.get("driver") == objects.DRIVER)
        return next((str(each["pool"]) for each in results), "")

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.status.reserved_for if one.resource == "pods")

    def _devices(self, field: str) -> list[dict[str, Any]]:
        allocation = self.status.allocation or {}
        return (allocation.get("devices") or {}).get(field) or []


def entries(nodes: Iterable[Node], known: Mapping[str, Entry], ready: Mapping[str, bool]) -> list[Entry]:
    """The nodes of a domain. A known node keeps its index; a new one gets the lowest free index of its
    partition. A node without a fabric has no index."""
    listed: list[Entry] = []
    taken: dict[str, set[int]] = {}
    for entry in known.values():
        taken.setdefault(entry["cliqueID"], set()).add(entry.get("index", -1))
    for node in sorted(nodes, key=lambda one: one.metadata.name):
        name, clique = node.metadata.name, clique_of(node)
        before = known.get(name)
        if before is not None and before["cliqueID"] == clique:
            index = before.get("index", -1)
        else:
            used = taken.setdefault(clique, set())
            index = next(number for number in range(len(used) + 1) if number not in used) if clique else -1
            used.add(index)
        listed.append(
            {
                "name": name,
                "ipAddress": "127.0.0.1",
                "cliqueID": clique,
                "index": index,
                "status": "Ready" if ready.get(name) else "NotReady",
            }
        )
    return listed


def clique_of(node: Node) -> str:
    """The NVLink partition of a node."""
    chosen = node.metadata.annotations.get(objects.CLIQUE)
    return chosen if chosen is not None else node.metadata.labels.get(NVIDIA_GPU_CLIQUE, "")


def summary(listed: list[Entry]) -> str:
    """The status of a domain. An elastic domain without nodes is ready, as with the driver."""
    return "Ready" if all(entry["status"] == "Ready" for entry in listed) else "NotReady"
