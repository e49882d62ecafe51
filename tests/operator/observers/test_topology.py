"""Which topology a set refers to, of two kinds that may have the same name."""

from __future__ import annotations

from grove.api.meta import ObjectMeta
from grove.api.types.clustertopology import (
    ClusterTopology,
    ClusterTopologyBinding,
    ClusterTopologyBindingSpec,
    ClusterTopologySpec,
    TopologyLevel,
)
from grove.operator.caches.registry import Caches
from grove.operator.observers.topology import TopologyLookup
from tests.plan.builders import a_set, read_set
from tests.topology.builders import missing, packed

META = ObjectMeta(name="racks", uid="u", resource_version="3")
WANTING = read_set(packed(a_set("a"), "rack"))


def test_topology_overrides_binding_of_same_name():
    caches = Caches()
    topologies = TopologyLookup(caches, enabled=True)
    assert topologies.of(WANTING) == missing()
    binding = ClusterTopologyBindingSpec(levels=(TopologyLevel("rack", "of-binding"),))
    caches.topology_bindings.apply_event("ADDED", ClusterTopologyBinding(metadata=META, spec=binding))
    assert topologies.of(WANTING).keys == {"rack": "of-binding"}
    spec = ClusterTopologySpec(levels=(TopologyLevel("rack", "of-topology"),))
    caches.topologies.apply_event("ADDED", ClusterTopology(metadata=META, spec=spec))
    assert topologies.of(WANTING).keys == {"rack": "of-topology"}


def test_topology_is_missing_without_constraint_or_disabled():
    caches = Caches()
    assert TopologyLookup(caches, enabled=True).of(read_set(a_set("a"))) == missing("")
    assert TopologyLookup(caches, enabled=False).of(WANTING) is None
