"""The watches of topologies: which change enqueues which topology, and after which delay."""

from __future__ import annotations

from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.api.types.clustertopology import TopologyStatus
from grove.operator.caches.registry import Caches
from grove.operator.keys import TopologyKey
from grove.operator.watches.topologies import topology_watches
from grove.schedulers.backend import SchedulerObject
from grove.schedulers.kai_topology import TOPOLOGY
from tests.operator.watches.enqueued_keys import EnqueuedKeys, changed
from tests.plan.builders import a_set, read_set
from tests.schedulers.builders import cluster_topology
from tests.topology.builders import packed

RACKS = TopologyKey("racks")


async def test_rows_of_topologies_enqueue_with_their_delays():
    caches = Caches(scheduler_topologies=[TOPOLOGY])
    nodes = caches.nodes
    topology = cluster_topology("zone")
    caches.topologies.apply_event("ADDED", topology)
    keys = EnqueuedKeys(topology_watches(caches))
    assert keys.take() == {RACKS: 0.0}
    workload = read_set(packed(a_set("a"), "rack"))
    owner = OwnerReference("grove.io/v1alpha1", "ClusterTopology", "gone", "u", controller=True)
    meta = ObjectMeta("racks", uid="k", resource_version="3", owner_references=(owner,))
    of_scheduler = caches.scheduler_topologies[TOPOLOGY]
    managed = SchedulerObject(ObjectMeta("x", uid="m", resource_version="4", owner_references=(owner,)))
    managed.metadata.labels[labels.MANAGED_BY] = labels.OPERATOR
    status = TopologyStatus(observed_generation=7)
    rows = [
        ("its spec", changed(caches.topologies, topology, 2, generation=2), {RACKS: 0.0}),
        ("its labels", changed(caches.topologies, topology, 3, generation=2, labels={"a": "b"}), {}),
        ("its status", changed(caches.topologies, topology, 4, generation=2, status=status), {RACKS: 0.5}),
        ("nodes", lambda: nodes._use(nodes._new_list()), {RACKS: 5.0}),
        ("a set that refers to it", lambda: caches.sets.apply_event("ADDED", workload), {RACKS: 5.0}),
        ("the set's status", changed(caches.sets, workload, 98), {}),
        ("its name at a scheduler", changed(of_scheduler, SchedulerObject(meta), 3), {RACKS: 0.0}),
        ("its object", changed(of_scheduler, managed, 4), {TopologyKey("gone"): 0.0}),
        ("the scheduler's kind", of_scheduler.clear, {RACKS: 0.0, TopologyKey("gone"): 0.0}),
        ("deletion", changed(caches.topologies, topology, 5, "DELETED"), {RACKS: 0.0}),
    ]
    for what, act, expected in rows:
        assert keys.after(act) == expected, what
