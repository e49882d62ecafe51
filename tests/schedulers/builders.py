"""Gangs for schedulers, made by the plan itself from sets in a few words."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.meta import ObjectMeta
from grove.api.topology import ClusterTopology, ClusterTopologySpec, TopologyLevel
from grove.schedulers.backend import Foreign, Request, Wish
from grove.topology.constraints import Topology
from tests.plan.builders import a_set, read_set
from tests.plan.world import World
from tests.topology.builders import KEYS, a_topology, packed

Body = dict[str, Any]
ZONE, RACK, HOST = KEYS.values()


def a_body(cliques: str, groups: str = "", wishes: str = "", queue: str = "team-a", **options: Any) -> Body:
    """A set with constraints and a queue."""
    body = packed(a_set(cliques, groups, **options), wishes) if wishes else a_set(cliques, groups, **options)
    if queue:
        body["metadata"]["labels"] = {"kai.scheduler/queue": queue}
        body["metadata"]["annotations"] = {"scheduling.grove.io/volcano-queue": queue, "note": "mine"}
    return body


def wish(body: Body) -> Wish:
    workload = read_set(body)
    return Wish(workload.metadata, workload.spec.template)


def requests(body: Body, topology: Topology | None = None) -> dict[str, Request]:
    """What schedulers are asked about each gang of the set's first replica, by the gang's name."""
    known = topology or a_topology()
    world = World(body)
    world.topology = known
    world.settle()
    return {
        name: Request(gang=world.api.get("PodGang", name), uid=f"uid-{name}", wish=wish(body), topology="kt")
        for name in world.api.all("PodGang")
    }


def a_request(body: Body) -> Request:
    """The same for a set of a single gang."""
    (only,) = requests(body).values()
    return only


def as_found(body: Body, **spec: Any) -> Foreign:
    """An object that a backend asked for, as the cluster has it; further fields are what others wrote."""
    metadata = body["metadata"]
    meta = ObjectMeta(
        name=metadata["name"],
        labels=dict(metadata.get("labels") or {}),
        annotations=dict(metadata.get("annotations") or {}),
    )
    return Foreign(meta, {**body["spec"], **spec})


def as_told(body: Body, status: Body) -> Foreign:
    """The same with what its scheduler says to it, as it is read."""
    return msgspec.json.decode(msgspec.json.encode({**body, "status": status}), type=Foreign)


def cluster_topology(*keys: str, name: str = "racks", uid: str = "u-1") -> ClusterTopology:
    levels = tuple(TopologyLevel(f"level-{number}", key) for number, key in enumerate(keys))
    return ClusterTopology(metadata=ObjectMeta(name=name, uid=uid), spec=ClusterTopologySpec(levels=levels))
