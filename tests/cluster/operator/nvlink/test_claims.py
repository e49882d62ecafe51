"""GPUs by shared claims of a set (B10): devices of nodes, allocated by the real scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grove.kube.auth import config
from grove.kube.client.decoding import Object
from grove.kube.client.resource import DEVICE_CLASSES, RESOURCE_SLICES
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.nvlink.domain_status import domains
from tests.cluster.operator.support.fabric import AUTO, DOMAINS, NVIDIA
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS, AnyObject
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.webhooks.harness import admitting

GPU = "gpu.nvidia.com"
CLAIMS = "grove.io/auto-mnnvl-claims"
NETWORK = {"autoMNNVLEnabled": True, "autoMNNVLDetectDRA": True}


@asynccontextmanager
async def gpus_of(world: World, nodes: list[str]) -> AsyncIterator[None]:
    """One GPU on each of these nodes, available by claim only, as NVIDIA's DRA driver publishes it."""
    chosen = {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}]}
    await world.client.create(DEVICE_CLASSES, {"metadata": {"name": GPU}, "spec": chosen}, as_type=Object)
    names = [f"{node}-{GPU}" for node in nodes]
    for node, name in zip(nodes, names, strict=True):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": GPU, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
        await world.client.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec}, as_type=Object)
    try:
        yield
    finally:
        for name in names:
            await world.client.delete(RESOURCE_SLICES, name, as_type=Object)
        await world.client.delete(DEVICE_CLASSES, GPU, as_type=Object)


def sharing(name: str, scope: str) -> dict[str, Any]:
    """A set of two pods with GPUs by claims of their clique: one claim for each pod, or one for both."""
    request = {"name": "gpu", "exactly": {"deviceClassName": GPU}}
    own = {"name": "gpu", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}
    body = workload(name, clique("worker", 2, resourceSharing=[{"name": "gpu", "scope": scope}]))
    body["spec"]["template"]["resourceClaimTemplates"] = [own]
    return body


def claims(pod: AnyObject) -> set[str]:
    """The claims that the containers of a pod use."""
    return {
        claim["name"] for container in pod.spec["containers"] for claim in container["resources"]["claims"]
    }


def nodes(world: World, name: str) -> list[str]:
    return sorted(pod.spec.get("nodeName", "") for pod in world.pods(part_of=name))


async def test_b10_only_pods_with_own_gpu_claims_get_a_domain(
    world: World, agents: list[str], cluster: LocalCluster
) -> None:
    """Pods that share one GPU are on one node, which has one channel, and thus get no domain."""
    connection = config.load(cluster.kubeconfig)
    async with (
        gpus_of(world, agents[:2]),
        admitting(world.client, connection, world.namespace, network=NETWORK),
        operating(world, fabrics=NVIDIA),
    ):
        created = await world.create(SETS, sharing("own", "PerReplica"))
        assert created.metadata.annotations == {**AUTO, CLAIMS: "worker/*"}
        await world.until_ready()
        assert domains(world) == ["own-0"]
        assert nodes(world, "own") == agents[:2]
        assert [claims(pod) for pod in sorted(world.pods(), key=lambda pod: pod.spec["hostname"])] == [
            {"mnnvl-claim", "own-0-worker-0-gpu"},
            {"mnnvl-claim", "own-0-worker-1-gpu"},
        ]
        await world.delete(SETS, "own")
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS), "all deleted")
        created = await world.create(SETS, sharing("twins", "AllReplicas"))
        assert created.metadata.annotations == {}
        await world.until_ready()
        assert domains(world) == []
        assert nodes(world, "twins") in ([agents[0]] * 2, [agents[1]] * 2)
        await world.delete(SETS, "twins")
        await world.until(lambda: not world.all(SETS), "all deleted")
        # In a domain, one of the two pods waits for ever for the channel, which the other one has.
        body = sharing("stuck", "AllReplicas")
        body["metadata"]["annotations"] = {**AUTO, CLAIMS: "worker/*"}
        await world.create(SETS, body)
        await world.until(
            lambda: (
                sorted(pod.condition("PodScheduled") for pod in world.pods(part_of="stuck"))
                == ["False", "True"]
            ),
            "one of the two has a node",
        )
