"""DynamoGraphDeployments on the real cluster: Dynamo's own examples become ready, with an operator that has
exactly the rights of the chart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from grove.api.configuration.types import (
    Dynamo,
    OperatorConfiguration,
    Scheduler,
    SchedulerProfile,
    TopologyAwareScheduling,
)
from grove.dynamo.admission.defaults import default_graph
from grove.kube.client.client import JSON, MERGE, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, EVENTS, SERVICES
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import ADAPTERS, GRAPHS
from grove.operator.dynamo_settings import DynamoSettings
from grove.schedulers.registry import backends
from tests.chart import Account
from tests.cluster.cli.test_inspection import grove
from tests.cluster.conftest import PATIENCE
from tests.cluster.operator.dynamo.graph_status import condition, ready, state
from tests.cluster.operator.lifecycle.test_recordings import RELEASE, record
from tests.cluster.operator.scheduling.test_topology import topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.processes import configuration, running
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment
from tests.shared import shared_data

CONFIGURATION = OperatorConfiguration(
    dynamo=Dynamo(enabled=True), topology_aware_scheduling=TopologyAwareScheduling(enabled=True)
)
KAI = Scheduler((SchedulerProfile("kai-scheduler"),))
"""A scheduler that supports topology constraints; it does not run here, so its pods stay pending."""


def examples() -> list[dict[str, Any]]:
    """All examples, with the defaults of the webhook, with unique names, and without GPUs, which the nodes do
    not have."""
    found = []
    for file in sorted((shared_data("dynamo") / "input").iterdir()):
        (body,) = (each for each in yaml.safe_load_all(file.read_text()) if each)
        body["metadata"]["name"] = f"{len(found)}-{body['metadata']['name']}"[:14].rstrip("-")
        body["metadata"]["name"] = f"d{body['metadata']['name']}"
        found.append(default_graph(without_gpus(body), creating=True))
    return found


def without_gpus(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_gpus(inner) for key, inner in value.items() if key != "resources"}
    return [without_gpus(inner) for inner in value] if isinstance(value, list) else value


def counts(world: World, name: str) -> list[int]:
    """The ready replicas of each component that has `readyReplicas` in the status."""
    components = world.get(GRAPHS, name).status["components"].values()
    return [each["readyReplicas"] for each in components if "readyReplicas" in each]


def replicas(world: World, name: str) -> list[int]:
    """The replicas in the template of the set, which stay as they were when the set was created."""
    template = world.get(SETS, name).spec["template"]
    return [clique["spec"]["replicas"] for clique in template["cliques"]]


async def test_examples_become_ready_scale_restart_and_delete(dynamo: World, cluster: LocalCluster) -> None:
    bodies = examples()
    async with operating(dynamo, topology_aware=True, dynamo=DynamoSettings.of(CONFIGURATION)) as operator:
        for body in bodies:
            _, _, version = body["apiVersion"].partition("/")
            await dynamo.create(replace(GRAPHS, version=version), body)
        names = [body["metadata"]["name"] for body in bodies]
        await dynamo.until(lambda: all(ready(dynamo, name) for name in names), "all examples are ready")
        assert counts(dynamo, names[0]) == [1, 1, 1]
        spanning = next(body for body in bodies if "multinode" in str(body))["metadata"]["name"]
        kinds = {each["componentKind"] for each in dynamo.get(GRAPHS, spanning).status["components"].values()}
        assert kinds == {"PodClique", "PodCliqueScalingGroup"}
        assert dynamo.find(CONFIG_MAPS, f"{spanning}-wait-leader-script")
        assert dynamo.find(SERVICES, f"{spanning}-decode")

        newer = names[-1]
        scaled = [{"op": "replace", "path": "/spec/components/1/replicas", "value": 2}]
        await dynamo.patch(GRAPHS, newer, scaled, kind=JSON)
        await dynamo.until(lambda: ready(dynamo, newer) and 2 in counts(dynamo, newer), "it is scaled")
        assert sorted(count for count in replicas(dynamo, newer)) == [1, 1, 1]
        before = {pod.uid for pod in dynamo.pods(part_of=newer)}
        await restart_and_follow(dynamo, cluster, newer)
        assert dynamo.get(GRAPHS, newer).status["restart"]["phase"] == "Completed"
        assert not before & {pod.uid for pod in dynamo.pods(part_of=newer)}
        await scale_through_adapter(dynamo, newer)
        await dynamo.delete(GRAPHS, newer)
        await dynamo.until(lambda: dynamo.find(SETS, newer) is None, "its set deleted")
        async with asyncio.timeout(PATIENCE):
            await operator.recorder.until_quiet()
    for _ in range(3):
        if not (written := await writes_after_restart(dynamo)):
            break
    assert written == [], "ready deployments need no writes"


async def restart_and_follow(dynamo: World, cluster: LocalCluster, name: str) -> None:
    """By the commands: a graph restarts one component after another."""
    where = ("-n", dynamo.namespace, "--kubeconfig", str(cluster.kubeconfig), "--lease", "none")
    code, out, err = await grove("restart", name, *where)
    assert code == 0, err
    assert out.startswith(f"DynamoGraphDeployment {name}: all components, 4 pods of 3 cliques: will be ")
    code, out, err = await grove("rollout", "status", name, *where, "--timeout", "2m")
    assert code == 0, err
    complete = f"PodCliqueSet {name}: rolled out, 1 of 1 replicas are available"
    assert out.splitlines()[-1] == complete
    assert out.count(complete) == 1, "not between two components"


async def writes_after_restart(dynamo: World) -> list[str]:
    """The writes of another operator. The first one may still finish a change; a later one must not write."""
    async with operating(dynamo, topology_aware=True, dynamo=DynamoSettings.of(CONFIGURATION)) as another:
        async with asyncio.timeout(PATIENCE):
            while not any("customresourcedefinitions" in str(call) for call in another.recorder.calls):
                await another.recorder.next_call()
            await another.recorder.until_quiet()
        return [str(call) for call in another.recorder.writes()]


async def test_undecodable_deployment_keeps_its_set(dynamo: World) -> None:
    body = deployment(component("Web", "frontend"))
    body["metadata"] = {"name": "kept"}
    await dynamo.watch(EVENTS)
    async with operating(dynamo, dynamo=DynamoSettings.of(CONFIGURATION)):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: ready(dynamo, "kept"))
    before, path = dynamo.get(SETS, "kept"), GRAPHS.path(dynamo.namespace, "kept")
    deep = b'{"spec":{"x":' + b"[" * 1500 + b"]" * 1500 + b"}}"
    await dynamo.client.raw("PATCH", path, deep, content_type=MERGE)
    async with operating(dynamo, dynamo=DynamoSettings.of(CONFIGURATION)) as operator:
        await dynamo.until(lambda: any(event.reason == "DecodeFailed" for event in dynamo.all(EVENTS)))
        async with asyncio.timeout(PATIENCE):
            await operator.recorder.until_quiet()
        after = dynamo.get(SETS, "kept")
        assert (after.uid, after.terminating) == (before.uid, False)
        await dynamo.client.raw("PATCH", path, b'{"spec":{"x":null}}', content_type=MERGE)
        await dynamo.delete(GRAPHS, "kept")
        await dynamo.until(lambda: dynamo.find(SETS, "kept") is None)


async def scale_through_adapter(dynamo: World, name: str) -> None:
    """Give one more component a scaling adapter, and scale the adapter as an autoscaler does."""
    adapter = f"{name}-{dynamo.get(GRAPHS, name).spec['components'][1]['name'].lower()}"
    added = [{"op": "add", "path": "/spec/components/1/scalingAdapter", "value": {}}]
    await dynamo.patch(GRAPHS, name, added, kind=JSON)

    def reported(replicas: int) -> bool:
        found = dynamo.find(ADAPTERS, adapter)
        return found is not None and found.status.get("replicas") == replicas

    await dynamo.until(lambda: reported(2), "the count in the adapter's status")
    await dynamo.scale(ADAPTERS, adapter, 3)
    await dynamo.until(
        lambda: reported(3) and ready(dynamo, name) and 3 in counts(dynamo, name), "the component scaled"
    )
    assert dynamo.get(GRAPHS, name).spec["components"][1]["replicas"] == 3


async def test_topology_constraints_are_applied_and_reported(dynamo: World) -> None:
    packed = component("Worker", topologyConstraint={"packDomain": "rack"})
    body = deployment(component("Web", "frontend"), packed, topologyConstraint={"packDomain": "zone"})
    body["metadata"] = {"name": "packed"}
    for each in body["spec"]["components"]:
        each["podTemplate"]["spec"]["schedulerName"] = "kai-scheduler"
    in_use = backends(KAI)
    layer = DynamoSettings.of(replace(CONFIGURATION, scheduler=KAI), in_use)
    async with operating(dynamo, topology_aware=True, dynamo=layer, backends=in_use):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: state(dynamo, "packed") == "failed", "it waits for a topology")
        assert "name a topology" in condition(dynamo.get(GRAPHS, "packed"), "Ready")["message"]
        async with topology(dynamo, "the-only-one"):
            levels = "TopologyLevelsAvailable"
            await dynamo.until(
                lambda: dynamo.get(GRAPHS, "packed").condition(levels) == "True", "its levels are available"
            )
            graph = dynamo.get(GRAPHS, "packed")
            assert graph.status["appliedTopologyConstraints"] == [
                {"packDomain": "zone", "topologyName": "the-only-one", "appliedTo": "PodCliqueSet/packed"},
                {
                    "component": "Worker",
                    "packDomain": "rack",
                    "topologyName": "the-only-one",
                    "appliedTo": "PodClique/packed-0-worker",
                },
            ]

        def unavailable() -> bool:
            levels = condition(dynamo.get(GRAPHS, "packed"), "TopologyLevelsAvailable")
            return levels.get("reason") == "TopologyDefinitionNotFound"

        await dynamo.until(unavailable, "the deleted topology reported")
        assert dynamo.get(GRAPHS, "packed").condition("grove.io/TopologyLevelsUnavailable") == "True"


CONVERTED = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/convert"},
    },
}


async def test_operator_refuses_foreign_crd_conversion(
    client: Client, dynamo_account: Account, tmp_path: Path
) -> None:
    name = f"{GRAPHS.plural}.{GRAPHS.group}"
    await client.patch(CRDS, name, {"spec": {"conversion": CONVERTED}}, as_type=Object)
    try:
        config = configuration(dynamo={"enabled": True})
        async with running(tmp_path, dynamo_account.kubeconfig, config) as operator:
            _, stderr = await operator.process.communicate()
    finally:
        ours = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        await client.patch(CRDS, name, ours, as_type=Object)
    assert operator.process.returncode == 4
    assert stderr.decode().splitlines()[-1].startswith("grove: dynamo.enabled: CustomResourceDefinition")


@pytest.mark.skipif(not RELEASE, reason="GROVE_RECORD names no release")
async def test_live_deployment_is_recorded(dynamo: World) -> None:
    body = deployment(component("Web", "frontend"), component("Worker"))
    body["metadata"] = {"name": "app"}
    async with operating(dynamo, dynamo=DynamoSettings.of(CONFIGURATION)) as operator:
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: ready(dynamo, "app"))
        await operator.recorder.until_quiet()
    await record(dynamo, "dynamo", {"dynamo": True}, GRAPHS, ADAPTERS, CONFIG_MAPS)
