"""Requests for scheduler backends, with PodGangs that the plan builds from short descriptions of sets."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.meta import ObjectMeta
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologySpec, TopologyLevel
from grove.schedulers.backend import GangRequest, SchedulerObject, SchedulingSpec
from grove.topology.constraints import ResolvedTopology
from tests.plan.builders import a_set, read_set
from tests.plan.simulator.simulator import Simulator
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


def scheduling_spec(body: Body) -> SchedulingSpec:
    workload = read_set(body)
    return SchedulingSpec(workload.metadata, workload.spec.template)


def requests(body: Body, topology: ResolvedTopology | None = None) -> dict[str, GangRequest]:
    """The requests for the gangs of a set, by the gang's name."""
    known = topology or a_topology()
    sim = Simulator(body)
    sim.topology = known
    sim.settle()
    return {
        name: GangRequest(
            gang=sim.api.get("PodGang", name),
            uid=f"uid-{name}",
            scheduling_spec=scheduling_spec(body),
            topology="kt",
        )
        for name in sim.api.all("PodGang")
    }


def a_request(body: Body) -> GangRequest:
    """The request for a set with a single gang."""
    (only,) = requests(body).values()
    return only


def as_found(body: Body, **spec: Any) -> SchedulerObject:
    """The existing object for a body that a backend built; `spec` are fields that others have written."""
    metadata = body["metadata"]
    meta = ObjectMeta(
        name=metadata["name"],
        labels=dict(metadata.get("labels") or {}),
        annotations=dict(metadata.get("annotations") or {}),
    )
    return SchedulerObject(meta, {**body["spec"], **spec})


def with_status(body: Body, status: Body) -> SchedulerObject:
    """The existing object, decoded, with the status that its scheduler reported."""
    return msgspec.json.decode(msgspec.json.encode({**body, "status": status}), type=SchedulerObject)


def cluster_topology(*keys: str, name: str = "racks", uid: str = "u-1") -> ClusterTopology:
    levels = tuple(TopologyLevel(f"level-{number}", key) for number, key in enumerate(keys))
    return ClusterTopology(metadata=ObjectMeta(name=name, uid=uid), spec=ClusterTopologySpec(levels=levels))
