"""DynamoGraphDeployments that opt out of Grove: pod affinity, Kueue's labels and LeaderWorkerSets."""

from __future__ import annotations

import asyncio
from typing import Any

import yaml

from grove.api.configuration.types import Dynamo, DynamoTopology, OperatorConfiguration, TopologyMode
from grove.api.meta import ObjectMeta
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.backends.lws import workload
from grove.dynamo.backends.object_writes import contains
from grove.dynamo.context import GraphContext
from grove.dynamo.snapshot import GraphSnapshot as Known
from grove.dynamo.snapshot import StoredGraph
from grove.kube.client.client import JSON
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.client.resource import NODES, PODS
from grove.local.cluster.cluster_shape import RACK, ZONE
from grove.operator.caches.dynamo import GRAPHS, KUEUE_TOPOLOGIES, LEADER_WORKER_SETS
from grove.operator.dynamo_settings import DynamoSettings
from tests.cluster.conftest import PATIENCE, established
from tests.cluster.conftest import apply as install
from tests.cluster.operator.dynamo.graph_status import condition
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment, engine, graph
from tests.shared import shared_data

LWS = "crds/lws/leaderworkerset.x-k8s.io_leaderworkersets.yaml"
WITHOUT_GROVE = OperatorConfiguration(
    dynamo=Dynamo(
        enabled=True,
        without_grove=True,
        topology_aware_scheduling=DynamoTopology(
            mode=TopologyMode.AFFINITY, domain_to_label_mapping={"zone": ZONE, "rack": RACK}
        ),
    )
)


async def test_without_grove_affinity_packs_pods_in_one_rack(
    dynamo: World,
) -> None:
    definition = yaml.safe_load(shared_data(LWS).read_text())
    definition.pop("status", None)
    await install(dynamo.client, definition)
    async with asyncio.timeout(PATIENCE):
        await established(dynamo.client, definition["metadata"]["name"])
    near = {"topologyConstraint": {"packDomain": "rack"}}
    body = deployment(
        component("Web", "frontend", replicas=3, **near),
        engine(["--tensor-parallel-size", "2"], **near),
        annotations={"nvidia.com/enable-grove": "false"},
        topologyConstraint={"packDomain": "zone"},
    )
    body["metadata"]["name"], body["metadata"]["namespace"] = "plain", dynamo.namespace
    nodes = (await dynamo.client.list(NODES, as_type=Object)).items
    racks = {node.metadata.name: node.metadata.labels.get(RACK) for node in nodes}
    async with operating(dynamo, dynamo=DynamoSettings.of(WITHOUT_GROVE)):
        await dynamo.watch(LEADER_WORKER_SETS)
        await dynamo.create(GRAPHS, default_graph(body, creating=True))

        def web() -> dict[str, Any]:
            found = dynamo.find(GRAPHS, "plain")
            components = found.status.get("components", {}) if found else {}
            return components.get("Web", {})

        await dynamo.until(lambda: web().get("availableReplicas") == 3, "three available pods")
        used_racks = {racks[pod.spec["nodeName"]] for pod in dynamo.pods()}
        assert len(used_racks) == 1
        assert None not in used_racks
        created = dynamo.get(LEADER_WORKER_SETS, "plain-worker-0")
        assert created.spec["leaderWorkerTemplate"]["size"] == 2
        assert contains(as_written(body, WITHOUT_GROVE)["spec"], created.spec), "the CRD prunes no field"
        await create_for_kueue(dynamo, body)
        levels = "TopologyLevelsAvailable"
        await dynamo.until(lambda: dynamo.get(GRAPHS, "plain").condition(levels) == "True", "domains exist")
        assert dynamo.all(SETS) == []
        none = [{"op": "replace", "path": "/spec/components/0/replicas", "value": 0}]
        await dynamo.patch(GRAPHS, "plain", none, kind=JSON)
        await dynamo.until(lambda: not dynamo.all(PODS), "none are left")


def as_written(body: dict[str, Any], config: OperatorConfiguration) -> dict[str, Any]:
    """The LeaderWorkerSet of the worker of a deployment, as the operator writes it."""
    found = graph(default_graph(body, creating=True))
    stored = StoredGraph(ObjectMeta(name=found.name, namespace=found.namespace))
    return workload(found, found.components[1], Known(stored, context=GraphContext.of(config)))


async def create_for_kueue(dynamo: World, body: dict[str, Any]) -> None:
    """Kueue does not run here: the LeaderWorkerSet with its labels is accepted by the real CRD unchanged."""
    mapping = {"zone": ZONE, "rack": RACK}
    topology = DynamoTopology(mode=TopologyMode.KUEUE, domain_to_label_mapping=mapping, queue_name="gpus")
    layer = Dynamo(enabled=True, without_grove=True, topology_aware_scheduling=topology)
    queued = {**body, "metadata": {**body["metadata"], "name": "queued"}}
    wanted = as_written(queued, OperatorConfiguration(dynamo=layer))
    created = await dynamo.create(LEADER_WORKER_SETS, wanted)
    assert created.labels["kueue.x-k8s.io/queue-name"] == "gpus"
    assert contains(wanted["spec"], created.spec)
    for role in ("leaderTemplate", "workerTemplate"):
        assert created.spec["leaderWorkerTemplate"][role]["metadata"]["annotations"].items() >= {
            ("kueue.x-k8s.io/podset-required-topology", RACK),
            ("kueue.x-k8s.io/podset-group-name", "queued-worker"),
        }


TOPOLOGY = "crds/kueue/kueue.x-k8s.io_topologies.yaml"
KUEUE = DynamoTopology(
    mode=TopologyMode.KUEUE, domain_to_label_mapping={"zone": ZONE, "rack": RACK}, queue_name="gpus"
)


async def test_missing_kueue_levels_are_reported(dynamo: World) -> None:
    body = deployment(
        component("Web", "frontend", replicas=0, topologyConstraint={"packDomain": "rack"}),
        annotations={"nvidia.com/enable-grove": "false"},
    )
    body["metadata"]["name"], body["metadata"]["namespace"] = "queued", dynamo.namespace
    layer = Dynamo(enabled=True, without_grove=True, topology_aware_scheduling=KUEUE)
    definition = yaml.safe_load(shared_data(TOPOLOGY).read_text())
    definition.pop("status", None)

    async def until(reason: str) -> None:
        def reported() -> bool:
            found = dynamo.find(GRAPHS, "queued")
            return found is not None and condition(found, "TopologyLevelsAvailable").get("reason") == reason

        await dynamo.until(reported, reason)

    async def topology(name: str, *labels: str) -> None:
        spec = {"levels": [{"nodeLabel": label} for label in labels]}
        kind = {"apiVersion": KUEUE_TOPOLOGIES.api_version, "kind": KUEUE_TOPOLOGIES.kind}
        body = {**kind, "metadata": {"name": name}, "spec": spec}
        await dynamo.client.create(KUEUE_TOPOLOGIES, body, as_type=Object)

    async with operating(dynamo, dynamo=DynamoSettings.of(OperatorConfiguration(dynamo=layer))):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await until("TopologyDefinitionNotFound")
        await install(dynamo.client, definition)
        try:
            async with asyncio.timeout(PATIENCE):
                await established(dynamo.client, definition["metadata"]["name"])
            await topology("zones", ZONE)
            await until("TopologyLevelsUnavailable")
            await topology("racks", ZONE, RACK)
            await until("AllTopologyLevelsAvailable")
        finally:
            await dynamo.client.delete(CRDS, definition["metadata"]["name"], as_type=Object)
