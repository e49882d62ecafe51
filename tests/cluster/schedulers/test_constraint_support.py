"""Topology constraints with each scheduler: admission refuses those that the scheduler cannot keep, and
Kubernetes' scheduler packs pods by preferred ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES
from grove.local.cluster.cluster_shape import RACK
from grove.local.cluster.lifecycle import LocalCluster
from grove.schedulers.registry import SchedulerBackends, backends
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.webhooks.harness import TOPOLOGIES, admitting, refusal

NAME = "constraint-support"
PLAIN: dict[str, Any] = {"name": "default-scheduler", "config": {"placement": "Off"}}
GANGS: dict[str, Any] = {"name": "default-scheduler", "config": {"gangScheduling": True, "placement": "Off"}}
VOLCANO = {"name": "volcano"}
PLACING = backends(Scheduler())
UNPLACED = backends(Scheduler((SchedulerProfile(**PLAIN),)))
SWITCHES = {"topologyAwareScheduling": {"enabled": True}}


@asynccontextmanager
async def racks(client: Client) -> AsyncIterator[None]:
    """A topology of the racks and hosts of the local cluster."""
    levels = [{"domain": "rack", "key": RACK}, {"domain": "host", "key": "kubernetes.io/hostname"}]
    body = {
        "apiVersion": TOPOLOGIES.api_version,
        "kind": TOPOLOGIES.kind,
        "metadata": {"name": NAME},
        "spec": {"levels": levels},
    }
    await client.create(TOPOLOGIES, body, as_type=Object)
    try:
        yield
    finally:
        await client.delete(TOPOLOGIES, NAME, as_type=Object)


def packed(scheduler: str, whole: dict[str, str], worker: dict[str, str] | None = None) -> dict[str, Any]:
    """A set of a router and workers, with a constraint on the set and possibly one on the workers."""
    pod = {"schedulerName": scheduler}
    body = workload("packed", clique("router", pod=pod), clique("worker", 3, pod=pod))
    body["spec"]["template"]["topologyConstraint"] = {"topologyName": NAME, "pack": whole}
    if worker is not None:
        body["spec"]["template"]["cliques"][1]["topologyConstraint"] = {"pack": worker}
    return body


@pytest.mark.parametrize(
    ("profile", "whole", "worker", "words"),
    [
        pytest.param(
            PLAIN,
            {"required": "rack"},
            None,
            "default-scheduler cannot keep required topology constraints",
            marks=pytest.mark.proves("required-gang", scheduler="default-scheduler+placement=Off"),
            id="default-scheduler, the set",
        ),
        pytest.param(
            PLAIN,
            {"preferred": "rack"},
            {"required": "host"},
            "default-scheduler cannot keep required topology constraints",
            marks=pytest.mark.proves("required-nested", scheduler="default-scheduler+placement=Off"),
            id="default-scheduler, a clique",
        ),
        pytest.param(
            GANGS,
            {"required": "rack"},
            {"required": "host"},
            "default-scheduler can keep one required topology constraint, for all pods of a gang",
            marks=pytest.mark.proves("required-nested", scheduler="default-scheduler+gangScheduling"),
            id="gangScheduling, set and clique",
        ),
        pytest.param(
            VOLCANO,
            {"required": "rack"},
            None,
            "volcano scheduler backend does not support topologyConstraint",
            marks=pytest.mark.proves("required-gang", scheduler="volcano"),
            id="volcano, the set",
        ),
        pytest.param(
            VOLCANO,
            {"required": "rack"},
            {"required": "host"},
            "volcano scheduler backend does not support topologyConstraint on clique worker",
            marks=pytest.mark.proves("required-nested", scheduler="volcano"),
            id="volcano, a clique",
        ),
        pytest.param(
            VOLCANO,
            {"preferred": "rack"},
            None,
            "volcano scheduler backend does not support topologyConstraint",
            marks=pytest.mark.proves("preferred", scheduler="volcano"),
            id="volcano, preferred",
        ),
    ],
)
async def test_constraint_that_cannot_be_kept_is_refused(
    client: Client,
    cluster: LocalCluster,
    crds: object,
    namespace: str,
    profile: dict[str, Any],
    whole: dict[str, str],
    worker: dict[str, str] | None,
    words: str,
) -> None:
    profiles = [profile] if profile["name"] == PLAIN["name"] else [PLAIN, profile]
    async with (
        racks(client),
        admitting(
            client, config.load(cluster.kubeconfig), namespace, scheduler={"profiles": profiles}, **SWITCHES
        ),
    ):
        body = packed(profile["name"], whole, worker)
        assert words in await refusal(client, SETS, body, namespace=namespace)


@pytest.mark.parametrize(
    "in_use",
    [
        pytest.param(PLACING, marks=pytest.mark.proves("preferred", scheduler="default-scheduler")),
        pytest.param(
            UNPLACED, marks=pytest.mark.proves("preferred", scheduler="default-scheduler+placement=Off")
        ),
    ],
    ids=["placed by the operator", "by pod affinity"],
)
async def test_preferred_level_packs_pods_in_one_rack(world: World, in_use: SchedulerBackends) -> None:
    """Without the constraint the scheduler spreads them over racks."""
    listed = await world.client.list(NODES, as_type=Object)
    rack_of = {node.metadata.name: node.metadata.labels[RACK] for node in listed.items}
    async with racks(world.client), operating(world, topology_aware=True, backends=in_use):
        await world.create(SETS, packed("default-scheduler", {"preferred": "rack"}))
        await world.until(lambda: sum("nodeName" in pod.spec for pod in world.pods()) == 4, "four pods bound")
        assert len({rack_of[pod.spec["nodeName"]] for pod in world.pods()}) == 1
