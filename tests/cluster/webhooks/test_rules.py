"""All admission rules of PodCliqueSets and topologies on the real API server.

Sets that the tables of `tests/rules` refuse are refused with the same message by the webhook, or earlier by
the API server's own checks; sets that the tables accept are accepted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml

from grove.api.types.clustertopology import ClusterTopologyBinding
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, Resource
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.resources import external_resource, resource_of
from grove.rules.model import AdmissionResult
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.schedulers.volcano import QUEUE
from tests.cluster.conftest import PATIENCE, apply, established, removed
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import TOPOLOGIES, Body, admitting, eventually, refusal, topology
from tests.namespaces import delete_all
from tests.rules.builders import DEFAULT, FACTS, bare, changed, clique, workload
from tests.rules.messages import ON_KAI, VOLCANO, T
from tests.rules.podcliqueset import (
    test_create,
    test_fallbacks,
    test_group_rules,
    test_set_rules,
    test_topology_constraints,
    test_update,
)
from tests.shared import shared_data

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="session")]

NAMESPACE = "rules"
HOST = "kubernetes.io/hostname"
BINDINGS = resource_of(ClusterTopologyBinding.KIND)
QUEUES = external_resource(QUEUE)
QUEUE_CRD = "crds/volcano/scheduling.volcano.sh_queues.yaml"
DENIED = 'admission webhook "pcs.validating.webhooks.grove.io" denied the request: '
PROFILES = {
    "profiles": [
        {"name": name, **({"config": {"placement": "Off"}} if name == DEFAULT else {})}
        for name in FACTS.schedulers
    ]
}
SWITCHES = {
    "scheduler": PROFILES,
    "topologyAwareScheduling": {"enabled": True},
    "network": {"autoMNNVLEnabled": True},
}
SET_RULES = test_set_rules.METADATA + test_set_rules.SET + test_set_rules.CLIQUES + test_set_rules.ORDER
PART_RULES = test_group_rules.SCHEDULERS + test_group_rules.GROUPS + test_group_rules.SHARING
REFUSED = SET_RULES + PART_RULES + test_topology_constraints.REFUSED + test_fallbacks.REFUSED


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admitted(cluster: LocalCluster, crds: object) -> AsyncIterator[Client]:
    """A client of the API server, with all webhooks, both topologies of the tables and two Volcano queues."""
    connection = config.load(cluster.kubeconfig)
    async with Client(connection) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}, as_type=Object)
        async with admitting(client, connection, NAMESPACE, **SWITCHES):
            for name, domains in FACTS.topologies.items():
                await client.create(TOPOLOGIES, topology(name, *domains), as_type=Object)
            async with volcano_queues(client, "default", "team"):
                yield client
            for name in FACTS.topologies:
                await client.delete(TOPOLOGIES, name, as_type=Object)
        await delete_all(client, SETS, NAMESPACE)
        await client.delete(NAMESPACES, NAMESPACE, as_type=Object)


@asynccontextmanager
async def volcano_queues(client: Client, *names: str) -> AsyncIterator[None]:
    """Volcano's Queue CRD and these queues, with the status Open that Volcano's controller would write."""
    definition = yaml.load(shared_data(QUEUE_CRD).read_text(), Loader=yaml.CSafeLoader)
    definition.pop("status", None)
    await apply(client, definition)
    async with asyncio.timeout(PATIENCE):
        await established(client, definition["metadata"]["name"])
    for name in names:
        meta = {"metadata": {"name": name}}
        body = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, **meta, "spec": {}}
        await client.create(QUEUES, body, as_type=Object)
        opened = {"status": {"state": "Open"}}
        await client.patch(QUEUES, name, opened, subresource="status", as_type=Object)
    try:
        yield
    finally:
        await removed(client, definition["metadata"]["name"])


BY_KUBERNETES = (
    "metadata.name",
    "metadata.generateName",
    "metadata.labels",
    "metadata.annotations",
    "spec.replicas",
    "spec.template.cliqueStartupType",
    "spec.template.cliques.name",
    "spec.template.cliques[0].spec.podSpec.spec.topologySpreadConstraints",
    "spec.template.cliques[0].spec.podSpec.spec.initContainers[0].env",
    "spec.template.resourceSharing[0].scope",
)
"""Paths that the API server's own checks and the schema may refuse before they call the webhook."""


def in_namespace(body: Body) -> Body:
    return {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE}}


def expect(message: str, verdict: AdmissionResult) -> None:
    """The message is that of the verdict, or the API server's own about the same field."""
    if message.startswith(DENIED) or not message:
        assert re.sub(r"app-[a-z0-9]{5}", "app-xxxxx", message) == (
            DENIED + verdict.message if verdict.errors else ""
        )
        return
    assert message.startswith("PodCliqueSet.grove.io "), message
    (first, *_) = verdict.errors
    assert first.path in BY_KUBERNETES
    last = first.path.rpartition(".")[2]
    assert last in message or f"{first.problem}: " in message


@pytest.mark.proves("admission", scheduler="any")
@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[1][0][:60])
async def test_broken_rule_is_refused(admitted: Client, row: tuple[dict[str, Any], list[str]]) -> None:
    changes, errors = row
    body = in_namespace(changed(workload(), changes))
    message = await refusal(admitted, SETS, body, namespace=NAMESPACE)
    verdict = validation.on_create(default_set(body), FACTS)
    assert verdict.allowed or list(map(str, verdict.errors)) == errors
    expect(message, verdict)


@pytest.mark.proves("admission", scheduler="any")
@pytest.mark.parametrize("changes", test_create.ACCEPTED, ids=lambda changes: next(iter(changes), "")[:60])
async def test_valid_set_is_accepted(admitted: Client, changes: dict[str, Any]) -> None:
    body = in_namespace(changed(workload(), changes))
    if body.get("status"):
        del body["status"]  # the schema would refuse it
    assert await refusal(admitted, SETS, body, namespace=NAMESPACE) == ""


async def stored(client: Client, body: Body) -> Body:
    """The set, created under a generated name."""
    body = {**body, "metadata": {**body["metadata"], "generateName": "app-"}}
    del body["metadata"]["name"]
    return await client.create(SETS, body, namespace=NAMESPACE, as_type=dict)


async def update_refusal(client: Client, before: Body, after: Body) -> str:
    """The message for a refused change of a stored set; empty if it is accepted, and then it is stored."""
    created = await stored(client, before)
    kept = {key: created["metadata"][key] for key in ("name", "resourceVersion")}
    metadata = {**after["metadata"], **kept}
    try:
        await client.replace(
            SETS, kept["name"], {**after, "metadata": metadata}, namespace=NAMESPACE, as_type=Object
        )
    except ApiError as error:
        return error.status.message
    finally:
        await client.delete(SETS, kept["name"], namespace=NAMESPACE, as_type=Object)
    return ""


@pytest.mark.proves("admission", scheduler="any")
@pytest.mark.parametrize("row", test_update.REFUSED, ids=lambda row: row[2][0][:60])
async def test_immutable_field_change_is_refused(admitted: Client, row: tuple[Body, Body, list[str]]) -> None:
    before, after = (in_namespace(changed(workload(), changes)) for changes in row[:2])
    message = await update_refusal(admitted, before, after)
    expect(message, validation.on_update(before, default_set(after, before), FACTS))
    assert message


@pytest.mark.proves("admission", scheduler="any")
@pytest.mark.parametrize("row", test_update.ACCEPTED, ids=lambda row: next(iter(row[1]), "")[:60])
async def test_mutable_field_change_is_accepted(admitted: Client, row: tuple[Body, Body]) -> None:
    before = in_namespace(changed(workload(), row[0]))
    after = changed(before, row[1])
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    for each in after["spec"]["template"]["cliques"]:
        if "topologySpreadConstraints" in each["spec"]["podSpec"]:
            each["spec"]["podSpec"]["topologySpreadConstraints"] = [constraint]
    assert await update_refusal(admitted, before, after) == ""


async def test_set_above_the_pod_limit_is_refused(admitted: Client) -> None:
    counts = {"spec.replicas": 50_000, "spec.template.cliques[0].spec.replicas": 50_000}
    body = in_namespace(changed(bare(clique("a", 1)), counts))
    message = await refusal(admitted, SETS, body, namespace=NAMESPACE)
    assert message.startswith(DENIED)
    assert "the set asks for 2500000000 pods" in message
    before = in_namespace(bare(clique("a", 1)))
    assert "asks for 60000 pods" in await update_refusal(
        admitted, before, changed(before, {"spec.replicas": 60_000})
    )


async def test_defaults_are_stored(admitted: Client) -> None:
    created = await stored(admitted, in_namespace(bare(clique("a", 3), clique("b"))))
    template = created["spec"]["template"]
    assert template["terminationDelay"] == "4h0m0s"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    assert [each["spec"]["minAvailable"] for each in template["cliques"]] == [3, 2]
    assert template["cliques"][0]["spec"]["podSpec"]["terminationGracePeriodSeconds"] == 30
    await admitted.delete(SETS, created["metadata"]["name"], namespace=NAMESPACE, as_type=Object)


async def test_warnings_are_returned_to_the_client(admitted: Client) -> None:
    body = in_namespace(changed(workload(), {"spec.template.cliques[0].spec.podSpec.restartPolicy": "Never"}))
    reply = await admitted.raw("POST", f"{SETS.path(NAMESPACE)}?dryRun=All", msgspec.json.encode(body))
    assert "restartPolicy is Never" in reply.headers["Warning"]


LEVELS = [{"domain": "zone", "key": "example.com/zone"}, {"domain": "rack", "key": "example.com/zone"}]


@pytest.mark.proves("admission", scheduler="any")
@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        (TOPOLOGIES, {"levels": LEVELS}, "key must be unique across all levels"),
        (BINDINGS, {"levels": LEVELS}, 'spec.levels[1].key: Duplicate value: "example.com/zone"'),
        (
            TOPOLOGIES,
            {
                "levels": LEVELS[:1],
                "schedulerReferences": [{"schedulerName": "volcano", "reference": "x"}],
            },
            "scheduler backend does not implement topology-aware scheduling",
        ),
        (
            BINDINGS,
            {
                "levels": LEVELS[:1],
                "schedulerTopologyBindings": [{"schedulerName": "slurm", "topologyReference": "x"}],
            },
            "scheduler backend is not enabled in Grove",
        ),
        (
            TOPOLOGIES,
            {"levels": LEVELS[:1], "schedulerReferences": [{"schedulerName": "", "reference": ""}]},
            "spec.schedulerReferences[0].schedulerName: Required value",
        ),
        (
            BINDINGS,
            {
                "levels": LEVELS[:1],
                "schedulerTopologyBindings": [{"schedulerName": "kai-scheduler", "topologyReference": ""}],
            },
            "[0].topologyReference: Required value: name the topology of the scheduler, or remove the entry",
        ),
        (
            TOPOLOGIES,
            {"levels": [{"domain": "zone", "key": f"example.com/{'x' * 64}"}]},
            "spec.levels[0].key: Invalid value",
        ),
        (TOPOLOGIES, {"levels": LEVELS[:1]}, ""),
        (BINDINGS, {"levels": LEVELS[:1]}, ""),
    ],
)
async def test_invalid_topology_is_refused(
    admitted: Client, resource: Resource, spec: Body, expected: str
) -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "reviewed"}}
    message = await refusal(admitted, resource, {**body, "spec": spec})
    assert expected in message
    assert bool(message) == bool(expected)


@pytest.mark.parametrize("resource", [TOPOLOGIES, BINDINGS], ids=lambda resource: resource.kind)
async def test_set_is_accepted_right_after_its_topology(admitted: Client, resource: Resource) -> None:
    """The cache of the webhooks may not have the topology yet: they read it before they refuse the set."""
    for number in range(10):
        name = f"fresh-{number}"
        changes = {
            **ON_KAI,
            "spec.template.topologyConstraint": {"topologyName": name, "packDomain": "rack"},
        }
        body = in_namespace(changed(workload(), changes))
        assert f'"{name}" not found' in await refusal(admitted, SETS, body, namespace=NAMESPACE)
        fresh = {**topology(name, "zone", "rack"), "kind": resource.kind}
        await admitted.create(resource, fresh, as_type=Object)
        assert await refusal(admitted, SETS, body, namespace=NAMESPACE) == ""
        await admitted.delete(resource, name, as_type=Object)


@pytest.mark.proves("queues", scheduler="volcano")
async def test_missing_volcano_queue_is_refused(admitted: Client) -> None:
    body = in_namespace(changed(workload(), VOLCANO))
    assert await refusal(admitted, SETS, body, namespace=NAMESPACE) == ""
    other_queue = changed(body, {"metadata.annotations": {"scheduling.grove.io/volcano-queue": "missing"}})
    message = await refusal(admitted, SETS, other_queue, namespace=NAMESPACE)
    assert 'Volcano queue "missing" not found' in message


async def test_deleting_a_topology_warns_of_sets_that_use_it(admitted: Client) -> None:
    await admitted.create(TOPOLOGIES, topology("deleted", "zone", "rack"), as_type=Object)
    constraint = {"topologyName": "deleted", "packDomain": "rack"}
    body = changed(workload(), {**ON_KAI, f"{T}.topologyConstraint": constraint})
    created = await stored(admitted, in_namespace(body))
    warning = f"PodCliqueSet {NAMESPACE}/{created['metadata']['name']} loses rack"
    path = f"{TOPOLOGIES.path()}/deleted?dryRun=All"

    async def warned() -> bool:
        reply = await admitted.raw("DELETE", path)
        return warning in reply.headers.get("Warning", "")

    await eventually(warned)  # as soon as the webhooks have the set in their cache
    await admitted.delete(TOPOLOGIES, "deleted", as_type=Object)
    await admitted.delete(SETS, created["metadata"]["name"], namespace=NAMESPACE, as_type=Object)


async def test_label_that_no_node_has_is_a_warning(admitted: Client) -> None:
    levels = [{"domain": "host", "key": HOST}, {"domain": "rack", "key": "example.com/no-such-label"}]
    body = {**topology("unlabelled"), "spec": {"levels": levels}}
    reply = await admitted.raw("POST", f"{TOPOLOGIES.path()}?dryRun=All", msgspec.json.encode(body))
    warning = reply.headers.get("Warning", "")
    assert "spec.levels[1].key: no node has the label example.com/no-such-label" in warning
    assert "spec.levels[0]" not in warning
    await admitted.create(TOPOLOGIES, body, as_type=Object)
    counted = [
        {"domain": "host", "labelledNodes": 1, "values": 1},
        {"domain": "rack", "labelledNodes": 0, "values": 0},
    ]
    patch = {"status": {"nodes": 1, "levels": counted}}
    await admitted.patch(TOPOLOGIES, "unlabelled", patch, as_type=Object, subresource="status")
    constraint = {"topologyName": "unlabelled", "packDomain": "rack"}
    packed = in_namespace(changed(workload(), {**ON_KAI, f"{T}.topologyConstraint": constraint}))

    async def warned() -> bool:
        found = await admitted.raw("POST", f"{SETS.path(NAMESPACE)}?dryRun=All", msgspec.json.encode(packed))
        return "no node has the label example.com/no-such-label" in found.headers.get("Warning", "")

    await eventually(warned)  # as soon as the webhooks have the status in their cache
    await admitted.delete(TOPOLOGIES, "unlabelled", as_type=Object)
