"""DynamoGraphDeployments in Kueue's queues. Kueue does not run here: the test writes Workloads as Kueue does,
for a pod of a Deployment and for a replica of a LeaderWorkerSet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import yaml

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.dynamo.admission.defaults import default_graph
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.client.resource import DEPLOYMENTS, EVENTS, PODS, Resource
from grove.operator.caches.dynamo import GRAPHS, KUEUE_WORKLOADS, LEADER_WORKER_SETS
from grove.operator.dynamo_settings import DynamoSettings
from tests.cluster.conftest import PATIENCE, established
from tests.cluster.conftest import apply as install
from tests.cluster.operator.dynamo.graph_status import condition
from tests.cluster.operator.dynamo.test_without_grove import KUEUE, LWS
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment, engine
from tests.shared import shared_data

QUEUE = "kueue.x-k8s.io/queue-name"
NAME = f"{KUEUE_WORKLOADS.plural}.{KUEUE_WORKLOADS.group}"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": KUEUE_WORKLOADS.group,
        "names": {"kind": KUEUE_WORKLOADS.kind, "plural": KUEUE_WORKLOADS.plural},
        "scope": "Namespaced",
        "versions": [
            {
                "name": KUEUE_WORKLOADS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANY, "status": ANY}}},
            }
        ],
    },
}
"""Kueue's Workload without the schema of pods."""
NO_FLAVOR = "couldn't assign flavors to pod set main: topology \"racks\" doesn't allow to fit any of 2 pod(s)"


@asynccontextmanager
async def kinds(client: Client) -> AsyncIterator[None]:
    """LeaderWorkerSets, and Kueue's Workloads until the block is left."""
    sets = yaml.safe_load(shared_data(LWS).read_text())
    sets.pop("status", None)
    for definition in (sets, DEFINITION):
        await install(client, definition)
    async with asyncio.timeout(PATIENCE):
        for definition in (sets, DEFINITION):
            await established(client, definition["metadata"]["name"])
    try:
        yield
    finally:
        await client.delete(CRDS, NAME, as_type=Object)


def workload_of(resource: Resource, owner: AnyObject, *, controller: bool) -> dict[str, Any]:
    """A Workload as Kueue creates it: the LeaderWorkerSet is an owner, and a single pod its controller."""
    reference = {"apiVersion": resource.api_version, "kind": resource.kind}
    reference |= {"name": owner.name, "uid": owner.uid} | ({"controller": True} if controller else {})
    return {
        "apiVersion": KUEUE_WORKLOADS.api_version,
        "kind": KUEUE_WORKLOADS.kind,
        "metadata": {"name": f"{resource.kind.lower()}-1", "ownerReferences": [reference]},
        "spec": {"queueName": "gpus"},
    }


def reported(status: str, type_: str = "QuotaReserved", message: str = NO_FLAVOR) -> dict[str, Any]:
    changed = {"type": type_, "status": status, "reason": "NoMatchingFlavor", "message": message}
    return {"status": {"conditions": [{**changed, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


async def test_refusals_of_kueue_are_in_the_status(dynamo: World, client: Client) -> None:
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    body = deployment(
        component("Web", "frontend"),
        component("Prefill", "prefill", {**gpu, "command": ["x"]}),
        engine(["--tensor-parallel-size", "2"], topologyConstraint={"packDomain": "rack"}),
        annotations={"nvidia.com/enable-grove": "false"},
    )
    body["metadata"]["name"], body["metadata"]["namespace"] = "queued", dynamo.namespace
    layer = Dynamo(enabled=True, without_grove=True, topology_aware_scheduling=KUEUE)

    def says(*texts: str) -> bool:
        message = condition(dynamo.get(GRAPHS, "queued"), "Ready").get("message", "")
        return all(text in message for text in texts)

    settings = DynamoSettings.of(OperatorConfiguration(dynamo=layer))
    async with kinds(client), operating(dynamo, dynamo=settings):
        await dynamo.watch(DEPLOYMENTS, EVENTS, LEADER_WORKER_SETS, KUEUE_WORKLOADS)
        await dynamo.create(GRAPHS, default_graph(body, creating=True))

        def pods() -> list[AnyObject]:
            return [pod for pod in dynamo.pods() if pod.name.startswith("queued-prefill-")]

        await dynamo.until(lambda: dynamo.all(LEADER_WORKER_SETS) and pods(), "its objects")
        await dynamo.until(lambda: len(dynamo.all(DEPLOYMENTS)) == 2, "its Deployments")
        queues = {each.name: each.labels.get(QUEUE) for each in dynamo.all(DEPLOYMENTS)}
        assert queues == {"queued-web": None, "queued-prefill": "gpus"}
        (made,) = dynamo.all(LEADER_WORKER_SETS)
        for resource, owner in ((PODS, pods()[0]), (LEADER_WORKER_SETS, made)):
            wanted = workload_of(resource, owner, controller=resource is PODS)
            created = await dynamo.create(KUEUE_WORKLOADS, wanted)
            await dynamo.patch(KUEUE_WORKLOADS, created.name, reported("False"), subresource="status")
        await dynamo.until(
            lambda: says(
                "Prefill: Kueue does not admit Workload pod-1",
                "Worker: Kueue does not admit Workload leaderworkerset-1",
                NO_FLAVOR,
            ),
            "why",
            5.0,
        )
        assert says("lower requests of Worker, or change quotas or flavors of LocalQueue gpus")
        await dynamo.until(
            lambda: any(event.reason == "WorkloadNotAdmitted" for event in dynamo.all(EVENTS)), "an event"
        )
        await dynamo.patch(
            KUEUE_WORKLOADS, "leaderworkerset-1", reported("True", "Admitted"), subresource="status"
        )
        await dynamo.until(lambda: not says("Workload leaderworkerset-1"), "it goes")
        await dynamo.delete(KUEUE_WORKLOADS, "pod-1")
        await dynamo.until(lambda: not says("Kueue"), "nothing of Kueue any more")
