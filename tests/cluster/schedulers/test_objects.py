"""The schedulers' objects on their own CRDs: accepted, and every field stored."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.types.clustertopology import ClusterTopology
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, Resource
from grove.kube.errors import ApiError, NotFound
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import IntentState
from grove.operator.caches.resources import resource_of
from grove.schedulers.backend import ForeignKind, SchedulerBackend, SchedulerObject, with_pod_additions
from grove.schedulers.kai import Kai
from grove.schedulers.volcano import Volcano
from tests.cluster.schedulers.native import gang_scheduling, served_backend
from tests.cluster.webhooks.harness import eventually
from tests.clusters import Clusters
from tests.namespaces import make_namespace
from tests.schedulers.builders import a_body, requests

TOPOLOGIES = resource_of(ClusterTopology.KIND)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
HOST = "kubernetes.io/hostname"
FULL = a_body("a:2 b:3/2 c", "x:3/2=b,c", "zone/rack x:rack b:/host", priorityClassName="high")


def external_resource(kind: ForeignKind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)


async def dry_run(client: Client, resource: Resource, body: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The object as the server would store it."""
    body = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
    stored: dict[str, Any] = await client.create(
        resource, body, namespace=namespace, as_type=dict, dry_run=True
    )
    return stored


async def _all_fields_stored(
    client: Client, backend: SchedulerBackend, body: dict[str, Any], namespace: str
) -> None:
    assert backend.gang_object_kind is not None
    for request in requests(body).values():
        desired = backend.gang_object(replace(request, name=backend.gang_object_name(request)))
        assert desired is not None
        stored = await dry_run(client, external_resource(backend.gang_object_kind), desired, namespace)
        assert {field: stored["spec"][field] for field in desired["spec"]} == desired["spec"]
        assert desired["metadata"]["labels"].items() <= stored["metadata"]["labels"].items()
        assert stored["metadata"]["ownerReferences"] == desired["metadata"]["ownerReferences"]


async def _knows_priority_class(client: Client, namespace: str) -> bool:
    """Whether admission has observed the class: until then it refuses pods and groups that name it."""
    spec = {"containers": [{"name": "main", "image": "model:1"}], "priorityClassName": "high"}
    try:
        await dry_run(client, PODS, {"metadata": {"name": "probe"}, "spec": spec}, namespace)
    except ApiError:
        return False
    return True


@pytest.mark.parametrize(
    ("backend", "body"),
    [
        pytest.param(
            Kai(),
            FULL,
            marks=[
                pytest.mark.proves("preferred", scheduler="kai-scheduler"),
                pytest.mark.proves("priority", scheduler="kai-scheduler"),
            ],
            id="kai, all fields",
        ),
        pytest.param(Kai(), a_body("a"), id="kai, small"),
        pytest.param(
            Volcano(),
            a_body("a:2 b:3/1", "x:2/1=b", priorityClassName="high"),
            marks=[
                pytest.mark.proves("gang", scheduler="volcano"),
                pytest.mark.proves("priority", scheduler="volcano"),
            ],
            id="volcano",
        ),
    ],
)
async def test_pod_groups_are_accepted_and_stored_completely(
    client, namespace, scheduler_crds, backend, body
):
    await _all_fields_stored(client, backend, body, namespace)


@pytest.mark.proves("priority", scheduler="default-scheduler+gangScheduling")
async def test_in_tree_pod_groups_are_accepted(clusters: Clusters):
    cluster = await clusters.start("gangs", nodes=1, shape="1x1x1x1", **gang_scheduling())
    backend = served_backend()
    body = a_body("a:2 b", "", "zone/rack b:/host", priorityClassName="high")
    async with Client(config.load(cluster.kubeconfig)) as client:
        await make_namespace(client, "gangs")
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000}, as_type=Object)
        await eventually(lambda: _knows_priority_class(client, "gangs"))
        await _all_fields_stored(client, backend, body, "gangs")
        (request,) = requests(body).values()
        pod = with_pod_additions(
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "main", "image": "model:1"}], "serviceAccountName": ""},
            },
            backend.pod_additions(request.gang, "wl-0-b", "a-group"),
        )
        stored = await dry_run(client, PODS, pod, "gangs")
        assert stored["spec"]["schedulingGroup"] == pod["spec"]["schedulingGroup"]
        assert stored["spec"]["affinity"] == pod["spec"]["affinity"]


async def test_kai_topology_survives_levels_that_kai_rejects(client, scheduler_crds):
    kai, kind = Kai(), external_resource(Kai.topology_kind)
    executor = Executor(client.transport, [kind])

    async def topology(*keys: str) -> ClusterTopology:
        levels = [{"domain": f"level-{number}", "key": key} for number, key in enumerate(keys)]
        body = {"metadata": {"name": "kai-life"}, "spec": {"levels": levels}}
        try:
            await client.get(TOPOLOGIES, "kai-life", as_type=Object)
        except NotFound:
            full = {"apiVersion": TOPOLOGIES.api_version, "kind": TOPOLOGIES.kind, **body}
            return await client.create(TOPOLOGIES, full, as_type=ClusterTopology)
        return await client.patch(TOPOLOGIES, "kai-life", body, as_type=ClusterTopology)

    async def kai_topology() -> SchedulerObject | None:
        try:
            return await client.get(kind, "kai-life", as_type=SchedulerObject)
        except NotFound:
            return None

    async def sync(wanted: ClusterTopology) -> tuple[list[IntentState], list[str]]:
        outcome = await executor.execute(kai.sync_topology(wanted, await kai_topology()).intents)
        found = await kai_topology()
        assert found is not None
        return [result.state for result in outcome.results], [
            level["nodeLabel"] for level in found.spec["levels"]
        ]

    try:
        assert await sync(await topology("zone", "rack")) == ([IntentState.DONE], ["zone", "rack"])
        assert await sync(await topology("zone", "rack")) == ([], ["zone", "rack"])
        assert await sync(await topology("zone", "block", HOST)) == (
            [IntentState.DONE] * 3,
            ["zone", "block", HOST],
        )
        states, levels = await sync(await topology(HOST, "zone"))
        assert states[0] is IntentState.FAILED
        assert IntentState.DONE not in states
        assert levels == ["zone", "block", HOST], "levels that KAI rejects must not delete its Topology"
        drift = kai.check_topology_drift(
            await topology("zone", "block", HOST), "kai-life", await kai_topology()
        )
        assert (drift.in_sync, drift.observed) == (True, 1)
    finally:
        await client.delete(TOPOLOGIES, "kai-life", as_type=Object)
        with suppress(NotFound):  # the garbage collector may be as quick
            await client.delete(kind, "kai-life", as_type=Object)
