"""Decoding of Kubernetes' own kinds, as the real API server sends them."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.types.kubernetes_objects import (
    HorizontalPodAutoscaler,
    Node,
    PartialObjectMetadata,
    ResourceClaim,
    ResourceClaimTemplateObject,
    ScaleTarget,
    Service,
)
from grove.api.types.pod import Gate, Pod, PodClaim
from grove.kube.client.resource import (
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
)

NAME = {"metadata": {"name": "view", "labels": {"a": "b"}}}
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
TARGET = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "inference-0-router"}
GPUS = {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": 0.5}}


@pytest.fixture
def stored(client, namespace):
    """Creates an object and reads it back as one of our types."""

    async def create(resource, view, **fields):
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        await client.create(resource, {**kind, **NAME, **fields}, namespace=namespace, as_type=dict)
        return await client.get(resource, "view", namespace=namespace, as_type=view)

    return create


async def test_pod_is_decoded(stored):
    spec = {
        "containers": [{"name": "main", "image": "model:1", "resources": GPUS}],
        "initContainers": [{"name": "sidecar", "image": "proxy:1", "restartPolicy": "Always"}],
        "schedulingGates": [{"name": "grove.io/podgang-pending-creation"}],
        "hostname": "inference-0-router-0",
        "nodeSelector": {"rack": "r1"},
        "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "inference-0"}],
        "schedulerName": "kai-scheduler",
    }
    pod = await stored(PODS, Pod, spec=spec)
    assert pod.metadata.labels == {"a": "b"}
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m", "nvidia.com/gpu": "8"}
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert pod.spec.scheduling_gates == (Gate("grove.io/podgang-pending-creation"),)
    assert pod.spec.hostname == "inference-0-router-0"
    assert pod.spec.node_selector == {"rack": "r1"}
    assert pod.spec.resource_claims == (PodClaim("mnnvl-claim", resource_claim_template_name="inference-0"),)
    assert pod.spec.scheduler_name == "kai-scheduler"
    assert pod.status.phase == "Pending"
    (gated,) = (each for each in pod.status.conditions if each.type == "PodScheduled")
    assert (gated.status, gated.reason) == ("False", "SchedulingGated")


async def test_nodes_are_decoded(client):
    nodes = (await client.list(NODES, as_type=Node)).items
    assert {node.status.allocatable["nvidia.com/gpu"] for node in nodes} == {"8"}
    assert all(node.metadata.labels["kubernetes.io/hostname"] for node in nodes)
    assert all("Ready" in {each.type for each in node.status.conditions} for node in nodes)


async def test_headless_service_is_decoded(stored):
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"a": "b"}}
    service = await stored(SERVICES, Service, spec=spec)
    assert service.spec.cluster_ip == "None"
    assert service.spec.publish_not_ready_addresses
    assert service.spec.selector == {"a": "b"}


async def test_autoscaler_is_decoded(stored):
    metric = {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
    }
    spec = {"scaleTargetRef": TARGET, "minReplicas": 2, "maxReplicas": 5, "metrics": [metric]}
    autoscaler = await stored(HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, spec=spec)
    assert autoscaler.spec.scale_target_ref == ScaleTarget(
        kind="PodClique", name="inference-0-router", api_version="grove.io/v1alpha1"
    )
    assert (autoscaler.spec.min_replicas, autoscaler.spec.max_replicas) == (2, 5)
    assert [msgspec.json.decode(each) for each in autoscaler.spec.metrics] == [metric]


async def test_claim_is_decoded(stored):
    claim = await stored(RESOURCE_CLAIMS, ResourceClaim, spec=DEVICES)
    assert claim.metadata.name == "view"
    assert claim.status.reserved_for == ()


async def test_claim_template_is_decoded(stored):
    body = {"metadata": {"labels": {"team": "search"}}, "spec": DEVICES}
    template = await stored(RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplateObject, spec=body)
    assert msgspec.json.decode(template.spec.metadata)["labels"] == {"team": "search"}
    (request,) = msgspec.json.decode(template.spec.spec)["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu.example.com"


@pytest.mark.parametrize("resource", [SERVICE_ACCOUNTS, ROLES], ids=lambda resource: resource.kind)
async def test_partial_object_metadata_is_decoded(stored, resource):
    assert (await stored(resource, PartialObjectMetadata)).metadata.labels == {"a": "b"}
