"""Topology constraints in gangs: those of upstream's topology workloads (TAS7 to TAS23), and changes while
levels and topologies are deleted and created."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import yaml

from grove.api.conditions import ConditionType
from grove.api.naming import annotations as keys
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.kube.client.resource import PODS, Resource
from grove.kube.errors import NotFound
from grove.operator.caches.resources import resource_of
from tests.chart import Account
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, GROUPS, SETS, AnyObject
from tests.cluster.operator.support.workloads import upstream
from tests.shared import ROOT

TOPOLOGIES = resource_of(ClusterTopology.KIND)
BINDINGS = resource_of(ClusterTopologyBinding.KIND)
ZONE, BLOCK, RACK, HOST = KEYS = (
    "topology.kubernetes.io/zone",
    "topology.example.com/block",
    "topology.example.com/rack",
    "kubernetes.io/hostname",
)
LEVELS = [
    {"domain": domain, "key": key}
    for domain, key in zip(("zone", "block", "rack", "host"), KEYS, strict=True)
]


@pytest.fixture
def account(aware_account: Account) -> Account:
    """With the rights that topologies need."""
    return aware_account


def a_topology(kind: Resource, name: str) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": {"levels": LEVELS},
    }


@asynccontextmanager
async def topology(world: World, name: str, kind: Resource = TOPOLOGIES) -> AsyncIterator[None]:
    """A topology with all four levels until the block is left."""
    await world.client.create(kind, a_topology(kind, name), as_type=AnyObject)
    try:
        yield
    finally:
        with suppress(NotFound):
            await world.client.delete(kind, name, as_type=AnyObject)


def must(key: str) -> dict[str, Any]:
    return {"packConstraint": {"required": key}}


def should(key: str) -> dict[str, Any]:
    return {"packConstraint": {"preferred": key}}


def part(name: str, constraint: dict[str, Any], *cliques: str) -> dict[str, Any]:
    members = [f"{name}-{clique}" for clique in cliques]
    return {"name": name, "podGroupNames": members, "topologyConstraint": constraint}


def constraints(gang: AnyObject) -> dict[str, Any]:
    """All topology constraints of a gang; those of cliques under the cliques' names, the topology as "of"."""
    found = {name: value for name, value in gang.spec.items() if name.startswith("topology")}
    for group in gang.spec["podgroups"]:
        if "topologyConstraint" in group:
            found[group["name"]] = group["topologyConstraint"]
    if name := gang.metadata.annotations.get(keys.TOPOLOGY_NAME):
        found["of"] = name
    return found


GROVE = {"of": "grove-topology"}
SCALED = {**GROVE, "topologyConstraint": must(RACK)}
EXPECTED: dict[str, dict[str, Any]] = {
    "tas-hierarchy-0": {  # TAS8
        **GROVE,
        "topologyConstraint": must(BLOCK),
        "topologyConstraintGroupConfigs": [
            part(f"tas-hierarchy-0-inference-group-{replica}", must(RACK), "prefill", "decode")
            for replica in (0, 1)
        ],
        **{
            f"tas-hierarchy-0-inference-group-{replica}-{clique}": must(HOST)
            for replica in (0, 1)
            for clique in ("prefill", "decode")
        },
    },
    "tas-pcs-pclq-0": {  # TAS9
        **GROVE,
        "topologyConstraint": must(BLOCK),
        "tas-pcs-pclq-0-worker": must(HOST),
    },
    "tas-pcsg-scale-0": {  # TAS10
        **GROVE,
        "topologyConstraint": must(BLOCK),
        "topologyConstraintGroupConfigs": [part("tas-pcsg-scale-0-inference-group-0", must(RACK), "worker")],
    },
    "tas-pcsg-scale-0-inference-group-0": SCALED,
    "tas-pcsg-scale-0-inference-group-1": SCALED,
    "tas-no-constraint-0": {},  # TAS7
    "tas-h100-workload-0": {"of": "h100-topology", "topologyConstraint": must(BLOCK)},  # TAS17
    "tas-preferred-pack-0": {  # TAS23
        **GROVE,
        "topologyConstraint": {"packConstraint": {"required": BLOCK, "preferred": RACK}},
        "topologyConstraintGroupConfigs": [part("tas-preferred-pack-0-workers-0", should(HOST), "worker")],
        "tas-preferred-pack-0-router": should(HOST),
    },
    "tas-preferred-pack-0-workers-0": {**GROVE, "topologyConstraint": should(HOST)},
}


async def test_gangs_have_constraints_of_upstream_workloads(world: World) -> None:
    names = ("hierarchy", "pcs-pclq", "pcsg-scale", "no-constraint", "multi-topology-h100", "preferred-pack")
    async with (
        topology(world, "grove-topology"),
        topology(world, "h100-topology", BINDINGS),
        operating(world, topology_aware=True),
    ):
        for name in names:
            await world.create(SETS, upstream(f"tas-{name}"))
        await world.until(lambda: world.names(GANGS) == sorted(EXPECTED), "all gangs")
        assert {gang.name: constraints(gang) for gang in world.all(GANGS)} == EXPECTED
        assert not any(keys.TOPOLOGY_NAME in pod.metadata.annotations for pod in world.pods())


def condition(world: World, name: str) -> tuple[str, str]:
    """Status and reason of the set's condition `TopologyLevelsUnavailable`."""
    conditions = world.get(SETS, name).status.get("conditions") or ()
    found = [each for each in conditions if each["type"] == ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


@pytest.mark.proves("topology-changes", scheduler="any")
async def test_pods_stay_while_levels_and_topology_change(world: World) -> None:
    name, base, scaled = "tas-pcsg-scale", "tas-pcsg-scale-0", "tas-pcsg-scale-0-inference-group-1"

    async def until_condition(*expected: str) -> None:
        await world.until(lambda: condition(world, name) == expected, f"{expected} in the set's status")

    def constraints_of(gang: str) -> dict[str, Any]:
        return constraints(world.get(GANGS, gang))

    async with topology(world, "grove-topology"), operating(world, topology_aware=True):
        await world.create(SETS, upstream(name))
        await world.until_ready()
        await until_condition("False", "AllClusterTopologyLevelsAvailable")
        pods = {pod.uid for pod in world.pods()}

        without_rack = [level for level in LEVELS if level["domain"] != "rack"]
        await world.client.patch(
            TOPOLOGIES, "grove-topology", {"spec": {"levels": without_rack}}, as_type=AnyObject
        )
        await until_condition("True", "ClusterTopologyLevelsUnavailable")
        await world.until(lambda: constraints_of(scaled) == {}, "no rack in the gang")
        await world.until(
            lambda: constraints_of(base)["topologyConstraint"] == must(BLOCK), "the block in the gang"
        )

        await world.client.delete(TOPOLOGIES, "grove-topology", as_type=AnyObject)
        await until_condition("True", "ClusterTopologyNotFound")
        await world.until(
            lambda: not {"topologyConstraint", "of"} & constraints_of(base).keys(), "no constraint"
        )
        await world.scale(GROUPS, f"{base}-inference-group", 4)
        await world.until(lambda: len(world.pods()) == 8, "a set without its topology scaled out")
        await world.until_ready()
        assert constraints(world.get(GANGS, "tas-pcsg-scale-0-inference-group-2")) == {}

        await world.client.create(TOPOLOGIES, a_topology(TOPOLOGIES, "grove-topology"), as_type=AnyObject)
        await until_condition("False", "AllClusterTopologyLevelsAvailable")
        for gang in (scaled, "tas-pcsg-scale-0-inference-group-2"):
            await world.until(lambda gang=gang: constraints_of(gang) == SCALED, f"the constraints of {gang}")
        await world.until(lambda: constraints_of(base) == EXPECTED[base], "all constraints of the base gang")
        assert pods <= {pod.uid for pod in world.all(PODS)}, "running pods are never evicted"


async def test_documented_topology_example_constrains_gangs(world: World) -> None:
    text = (ROOT / "docs/examples/topology.yaml").read_text()
    levels, workload = yaml.load_all(text, Loader=yaml.CSafeLoader)
    zone, rack, host = (level["key"] for level in levels["spec"]["levels"])
    group = "close-0-model-0"
    try:
        await world.client.create(TOPOLOGIES, levels, as_type=AnyObject)
        async with operating(world, topology_aware=True):
            await world.create(SETS, workload)
            await world.until(lambda: world.names(GANGS) == ["close-0", group], "both gangs")
            assert {gang.name: constraints(gang) for gang in world.all(GANGS)} == {
                "close-0": {
                    "of": "racks",
                    "topologyConstraint": must(zone),
                    "topologyConstraintGroupConfigs": [part(group, must(rack), "leader", "worker")],
                    "close-0-model-0-worker": should(host),
                },
                group: {
                    "of": "racks",
                    "topologyConstraint": must(rack),
                    "close-0-model-1-worker": should(host),
                },
            }
    finally:
        with suppress(NotFound):
            await world.client.delete(TOPOLOGIES, "racks", as_type=AnyObject)
