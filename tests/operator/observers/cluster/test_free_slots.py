"""Free slots of topologies: what is counted, and when it is counted again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from grove import timing
from grove.fabrics.nvidia import Nvidia
from grove.fabrics.registry import Providers
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.nodes import Nodes
from grove.operator.metrics.placement import free_slots
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.cluster.free_slots import CountedSlots, FreeSlotsObserver
from grove.topology.placement.needs.devices import resource_of
from tests.operator.cluster_builders import listed, listed_nodes, node, pod
from tests.operator.observers.cluster.test_device_use import claim, listed_devices
from tests.schedulers.builders import cluster_topology

ZONES = cluster_topology("zone", name="zones")


@pytest.fixture(autouse=True)
def no_slots() -> Iterator[None]:
    free_slots.clear()
    yield
    free_slots.clear()


class OtherVendor(Nvidia):
    """A provider that counts accelerators by another resource."""

    vendor = "other"
    accelerator_classes = frozenset({"gpus"})

    def amount(self, quantities: Mapping[str, Any]) -> int:
        return int(quantities.get("example.com/accelerator", 0))


class FreeSlotsRun:
    """Two nodes of 8 GPUs in one zone, and a clock that the test sets."""

    def __init__(
        self, nodes: Nodes | None = None, pods: ClusterPods | None = None, devices: Devices | None = None
    ) -> None:
        self.now, self.announced = 1000.0, 0
        self.reserved: dict[str, dict[str, int]] = {}
        self.nodes = nodes or listed_nodes(*(node(name, unschedulable=False) for name in "ab"))
        self.pods = listed() if pods is None else pods
        view = ClusterView(self.nodes, self.pods, devices or Devices())
        self.observer = FreeSlotsObserver(
            view, lambda: self.reserved, Providers({"other": OtherVendor()}), lambda: self.now
        )
        self.observer.subscribe(self._announce)

    def _announce(self) -> None:
        self.announced += 1

    def bind(self, name: str, gpus: int, version: int = 2) -> None:
        resources = {"requests": {"nvidia.com/gpu": str(gpus)}}
        containers: list[dict[str, Any]] = [{"name": "main", "resources": resources}]
        self.pods.apply_event("ADDED", pod(name, version, node="a", containers=containers))

    def slots(self) -> dict[int, int]:
        found = self.observer.of(ZONES).slots
        assert found is not None
        return dict(found[0])


def published(gpus: int) -> float | None:
    labels = {"topology": "zones", "level": "level-0", "gpus": str(gpus)}
    return REGISTRY.get_sample_value("grove_topology_free_slots", labels)


def test_free_accelerators_are_counted_and_published() -> None:
    run = FreeSlotsRun()
    assert run.slots() == {1: 16, 8: 2, 16: 1, 32: 0, 64: 0}
    assert (published(1), published(16), published(64)) == (16, 1, 0)
    run.observer.forget("zones")
    assert published(1) is None


def test_accelerators_of_other_vendors_count() -> None:
    amounts = {"example.com/accelerator": "5", "example.com/other": "7"}
    run = FreeSlotsRun(listed_nodes(node(unschedulable=False, **amounts)))
    assert run.slots()[1] == 5


def test_devices_count_where_no_device_plugin_does() -> None:
    """Node a has 7 usable devices, of which one is allocated; node b has 8 GPUs besides its 4 devices."""
    nodes = listed_nodes(node("a", unschedulable=False, cpu="1"), node("b", unschedulable=False))
    run = FreeSlotsRun(nodes, devices=listed_devices(claim("pool-a")))
    run.reserved = {"a": {resource_of("gpus"): 2}}
    assert run.slots()[1] == 4 + 8


def test_reserved_accelerators_are_not_free() -> None:
    run = FreeSlotsRun()
    run.reserved = {"a": {"nvidia.com/gpu": 8, "cpu": 4000}, "b": {"nvidia.com/gpu": 3}}
    assert run.slots()[1] == 5


def test_slots_are_counted_again_after_the_interval() -> None:
    run = FreeSlotsRun()
    assert run.slots()[1] == 16
    run.now += 1
    assert run.observer.of(ZONES).due is None, "nothing has changed"
    run.bind("p", 4)
    assert run.slots()[1] == 16
    assert run.observer.of(ZONES).due == 1000.0 + timing.FREE_SLOTS_INTERVAL
    run.now = 1000.0 + timing.FREE_SLOTS_INTERVAL
    assert run.slots()[1] == 12
    assert run.observer.of(ZONES).due is None


def test_changed_levels_are_counted_at_once() -> None:
    run = FreeSlotsRun()
    assert run.slots()[1] == 16
    renamed = replace(ZONES, spec=replace(ZONES.spec, levels=(replace(ZONES.spec.levels[0], domain="area"),)))
    run.bind("p", 4)
    found = run.observer.of(renamed).slots
    assert found is not None
    assert found[0][1] == 12
    assert published(1) is None, "the former level is not published any more"


def test_first_change_after_a_count_is_announced() -> None:
    run = FreeSlotsRun()
    run.slots()
    run.bind("p", 1)
    run.bind("q", 1, 3)
    assert run.announced == 1
    run.now += timing.FREE_SLOTS_INTERVAL
    run.slots()
    run.bind("r", 1, 4)
    assert run.announced == 2


def test_slots_are_unknown_until_nodes_and_pods_are_listed() -> None:
    unlisted = FreeSlotsRun(pods=ClusterPods())
    assert unlisted.observer.of(ZONES) == CountedSlots(None)
    other_labels = FreeSlotsRun()
    assert other_labels.observer.of(cluster_topology("rack", name="racks")) == CountedSlots(None)
