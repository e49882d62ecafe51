"""A DynamoGraphDeployment says why its pods wait, soon after the fact, with a remedy that its user has; and
no longer once the fact is gone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog

from grove.dynamo.admission.defaults import default_graph
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    Resource,
)
from grove.operator.caches.dynamo import GRAPHS
from grove.operator.dynamo_settings import DynamoSettings
from grove.schedulers.registry import backends
from tests.cluster.operator.dynamo.graph_status import condition, ready
from tests.cluster.operator.dynamo.test_packing import CONFIGURATION, PLACING
from tests.cluster.operator.scheduling.test_placement import LEVELS, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment, engine

RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
NAME = "dynamo-reasons"
SOON = 5.0
"""Seconds from the creation of the set, of which the fact is true from the start, to status and event."""
CLAIM = {
    "metadata": {"name": "weights"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
log = structlog.get_logger(__name__)


def without_runtime_class() -> dict[str, Any]:
    body = deployment(component("Web", "frontend"), component())
    body["spec"]["components"][1]["podTemplate"]["spec"]["runtimeClassName"] = NAME
    return body


def too_large() -> dict[str, Any]:
    """A replica needs 5 whole nodes of one rack; a rack has 4."""
    near = {"topologyConstraint": {"packDomain": "rack"}}
    return deployment(component("Web", "frontend"), engine(["--tensor-parallel-size", "40"], 8, 5, **near))


def without_claim() -> dict[str, Any]:
    body = deployment(component("Web", "frontend"), component())
    volumes = [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}]
    body["spec"]["components"][1]["podTemplate"]["spec"]["volumes"] = volumes
    return body


@asynccontextmanager
async def remedies(dynamo: World) -> AsyncIterator[None]:
    """What the deployments lack: a RuntimeClass, a claim that is bound, and one more node in a rack."""
    client = dynamo.client
    like = (await client.list(NODES, as_type=dict)).items[0]
    own = {**like["metadata"]["labels"], LEVELS["host"]: NAME}
    status = {key: like["status"][key] for key in ("capacity", "allocatable")}
    volume = {
        "accessModes": CLAIM["spec"]["accessModes"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/weights"},
        "claimRef": {"namespace": dynamo.namespace, "name": CLAIM["metadata"]["name"]},
    }
    bodies = (
        (RUNTIME_CLASSES, {"metadata": {"name": NAME}, "handler": "nvidia"}),
        (PERSISTENT_VOLUMES, {"metadata": {"name": NAME}, "spec": volume}),
        (NODES, {"metadata": {"name": NAME, "labels": own}, "status": status}),
    )
    for resource, body in bodies:
        await client.create(resource, body, as_type=Object)
    await dynamo.create(PERSISTENT_VOLUME_CLAIMS, CLAIM)
    try:
        yield
    finally:
        for resource, _ in bodies:
            await client.delete(resource, NAME, as_type=Object)


async def test_graph_says_why_until_the_fact_is_gone(dynamo: World, client: Client) -> None:
    bodies = {"runtime": without_runtime_class(), "large": too_large(), "claim": without_claim()}
    expected = {
        "runtime": ("AdmissionRefused", f'RuntimeClass "{NAME}" not found'),
        "large": ("GangTooLarge", "no place even if the cluster were empty"),
        "claim": ("ClaimMissing", "PersistentVolumeClaim weights"),
    }
    await dynamo.watch(EVENTS)
    created: dict[str, float] = {}
    delays: dict[str, float] = {}

    def now() -> float:
        return asyncio.get_running_loop().time()

    def says_why(name: str) -> bool:
        """Whether condition, message and event have the reason."""
        code, text = expected[name]
        found = dynamo.find(GRAPHS, name)
        if found is None or dynamo.find(SETS, name) is None:
            return False
        created.setdefault(name, now())
        message = condition(found, "Ready").get("message", "")
        about = (event for event in dynamo.all(EVENTS) if event.reason == code)
        emitted = any(event.regarding["name"] == name for event in about)
        if f"{code}: " in message and text in message and emitted:
            delays.setdefault(name, now() - created[name])
        return name in delays

    in_use = backends(PLACING)
    layer = DynamoSettings.of(CONFIGURATION, in_use)
    async with topology(client), operating(dynamo, topology_aware=True, dynamo=layer, backends=in_use):
        for name, body in bodies.items():
            body["metadata"] = {"name": name}
            await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: sum(map(says_why, bodies)) == len(bodies), "why all of them wait")
        log.info("reasons of graphs", delays=delays)
        assert max(delays.values()) < SOON
        for name in bodies:
            message = condition(dynamo.get(GRAPHS, name), "Ready")["message"]
            assert not re.search(r"pack\.preferred|\bthe set\b|\bcliques\b|fallback", message), message

        async with remedies(dynamo):
            await dynamo.until(lambda: all(ready(dynamo, name) for name in bodies), "all are ready")
            for name in bodies:
                found = dynamo.get(GRAPHS, name)
                assert condition(found, "grove.io/Waiting") == {}
                assert condition(found, "Ready")["message"] == "All components are ready"
