"""Where the pods of upstream's topology scenarios are bound (TAS2 to TAS17), on the unmodified scheduler with
all feature gates at their defaults: each unit in one domain of its required level.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from grove.api.naming import labels
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES
from tests.cluster.operator.placement.extra_nodes import room
from tests.cluster.operator.scheduling.test_placement import LEVELS, PLACING, topology
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS, AnyObject, gated
from tests.cluster.operator.support.workloads import clique, upstream, workload
from tests.schedulers.topology_scenarios import SCENARIOS

NodeLabels = Mapping[str, Mapping[str, str]]


class Expected(NamedTuple):
    """What is expected of a scenario."""

    pods: int
    units: int
    """Gangs, group replicas and cliques with a required level."""
    replica_level: str = ""
    """The level that all pods of a replica of the set share, also those of scaled gangs."""


PLACED: dict[str, Expected] = {
    "tas2": Expected(7, 2),
    "tas3": Expected(4, 1, "rack"),
    "tas4": Expected(6, 2),
    "tas5": Expected(2, 1),
    "tas6": Expected(4, 1, "zone"),
    "tas-no-constraint": Expected(4, 0),  # TAS7
    "tas-hierarchy": Expected(8, 7, "block"),  # TAS8
    "tas-pcs-pclq": Expected(2, 2, "block"),  # TAS9
    "tas-pcsg-scale": Expected(6, 4, "block"),  # TAS10
    "tas11": Expected(4, 4),
    "tas12": Expected(20, 21, "block"),
    "tas14": Expected(4, 2, "rack"),
    "tas15": Expected(10, 5, "block"),
    "tas16": Expected(20, 26, "block"),
}


def body_of(name: str) -> dict[str, Any]:
    """The set of a scenario, for the default scheduler."""
    if "-" in name:
        return upstream(name)
    (found,) = (each.body for each in SCENARIOS.values() if each.body["metadata"]["name"] == name)
    body = copy.deepcopy(found)
    for each in body["spec"]["template"]["cliques"]:
        each["spec"]["podSpec"]["schedulerName"] = "default-scheduler"
    return body


async def labels_of_nodes(client: Client) -> NodeLabels:
    return {
        node.metadata.name: node.metadata.labels for node in (await client.list(NODES, as_type=Object)).items
    }


def required_units(gang: AnyObject) -> Iterator[tuple[str, str, set[str]]]:
    """Each unit of a gang with a required level: its name, the label key, and the names of its cliques."""
    spec = gang.spec
    cliques = [group["name"] for group in spec["podgroups"]]
    units = [(gang.name, spec, cliques)]
    units += [
        (config["name"], config, config["podGroupNames"])
        for config in spec.get("topologyConstraintGroupConfigs", ())
    ]
    units += [(group["name"], group, [group["name"]]) for group in spec["podgroups"]]
    for name, unit, members in units:
        if key := unit.get("topologyConstraint", {}).get("packConstraint", {}).get("required"):
            yield name, key, set(members)


def domains(pods: list[AnyObject], key: str, nodes: NodeLabels) -> set[str]:
    return {nodes[pod.spec["nodeName"]][key] for pod in pods}


def all_bound(world: World, name: str, count: int) -> bool:
    pods = world.pods(part_of=name)
    return len(pods) == count and all(pod.spec.get("nodeName") for pod in pods)


def check_domains(world: World, name: str, expected: Expected, nodes: NodeLabels) -> None:
    """Assert that each unit is in one domain, with all pods of its cliques."""
    units = 0
    for gang in world.all(GANGS, part_of=name):
        for unit, key, cliques in required_units(gang):
            pods = [pod for pod in world.pods(gang=gang.name) if pod.labels[labels.CLIQUE] in cliques]
            assert len(domains(pods, key, nodes)) == 1, f"{unit} lies in several of {key}"
            units += 1
    assert units == expected.units, f"{name} has {units} units with a required level"
    if expected.replica_level:
        for gang in (each for each in world.all(GANGS, part_of=name) if labels.BASE_GANG not in each.labels):
            pods = [pod for pod in world.pods(part_of=name) if pod.name.startswith(f"{gang.name}-")]
            assert len(domains(pods, LEVELS[expected.replica_level], nodes)) == 1, f"replica {gang.name}"


@pytest.mark.proves("required-gang", scheduler="default-scheduler")
@pytest.mark.proves("required-nested", scheduler="default-scheduler")
async def test_units_of_all_scenarios_are_in_one_domain(world: World, client: Client) -> None:
    nodes = await labels_of_nodes(client)
    async with topology(client, "grove-topology"), operating(world, topology_aware=True, backends=PLACING):
        for name in PLACED:
            await world.create(SETS, body_of(name))
        for name, expected in PLACED.items():
            await world.until(lambda n=name, e=expected: all_bound(world, n, e.pods), f"{name} bound")
            check_domains(world, name, expected, nodes)


@pytest.mark.proves("waiting-reason", scheduler="default-scheduler")
async def test_gang_larger_than_a_rack_stays_gated(world: World, client: Client) -> None:
    """TAS13: the cluster has room for the ten pods, no rack has."""
    body = upstream("tas-insuffic")
    for each in body["spec"]["template"]["cliques"]:
        each["spec"]["podSpec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    async with topology(client, "grove-topology"), operating(world, topology_aware=True, backends=PLACING):
        await world.create(SETS, body)
        await world.until(lambda: len(world.pods()) == 10, "all pods")
        await world.until(
            lambda: "no place even if the cluster were empty" in scheduled_message(world, "tas-insuffic-0")
        )
        assert all(map(gated, world.pods()))
        gang = world.get(GANGS, "tas-insuffic-0")
        assert [key for _, key, _ in required_units(gang)] == [LEVELS["rack"]]


def scheduled_message(world: World, gang: str) -> str:
    found = world.find(GANGS, gang)
    conditions = found.status.get("conditions", ()) if found is not None else ()
    return next((each["message"] for each in conditions if each["type"] == "Scheduled"), "")


@asynccontextmanager
async def segment(client: Client, name: str) -> AsyncIterator[None]:
    """Two blocks of two nodes with a label key of their own, and a topology of that key."""
    key = f"{name}.example.com/block"
    levels = [{"domain": "block", "key": key}, {"domain": "host", "key": LEVELS["host"]}]
    body = {
        "apiVersion": TOPOLOGIES.api_version,
        "kind": TOPOLOGIES.kind,
        "metadata": {"name": name},
        "spec": {"levels": levels},
    }
    async with room(client, name) as nodes:
        for block in range(2):
            await nodes.grow(2, {key: f"{name}-{block}"})
        await client.create(TOPOLOGIES, body, as_type=Object)
        try:
            yield
        finally:
            await client.delete(TOPOLOGIES, name, as_type=Object)


async def test_each_set_is_in_the_segment_of_its_topology(world: World, client: Client) -> None:
    """TAS17: two kinds of nodes, and a topology for each."""
    async with (
        segment(client, "h100"),
        segment(client, "gb200"),
        operating(world, topology_aware=True, backends=PLACING),
    ):
        nodes = await labels_of_nodes(client)
        for name in ("h100", "gb200"):
            body = workload(name, clique("worker", 2))
            constraint = {"topologyName": name, "pack": {"required": "block"}}
            body["spec"]["template"]["topologyConstraint"] = constraint
            await world.create(SETS, body)
        for name in ("h100", "gb200"):
            await world.until(lambda n=name: all_bound(world, n, 2), f"{name} bound")
            assert len(domains(world.pods(part_of=name), f"{name}.example.com/block", nodes)) == 1
