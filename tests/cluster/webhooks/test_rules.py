"""Every rule of admission on the real API server.

What the tables of the rules refuse is refused there with the same words, by us or, where the API server knows
better, before us; what they accept is accepted.
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
from grove.operator.caches.registry import external_resource, resource_of
from grove.rules.model import AdmissionResult
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.schedulers.volcano import QUEUE
from tests.cluster.conftest import PATIENCE, apply, established, removed
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import TOPOLOGIES, Body, admitting, eventually, refusal, topology
from tests.rules.builders import FACTS, bare, changed, clique, workload
from tests.rules.messages import ON_KAI, VOLCANO, T
from tests.rules.podcliqueset import (
    test_create,
    test_group_rules,
    test_set_rules,
    test_topology_constraints,
    test_update,
)
from tests.shared import shared_data

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="session")]

NAMESPACE = "rules"
BINDINGS = resource_of(ClusterTopologyBinding.KIND)
QUEUES = external_resource(QUEUE)
QUEUE_CRD = "crds/volcano/scheduling.volcano.sh_queues.yaml"
OURS = 'admission webhook "pcs.validating.webhooks.grove.io" denied the request: '
PROFILES = {"profiles": [{"name": name} for name in FACTS.schedulers]}
SWITCHES = {
    "scheduler": PROFILES,
    "topologyAwareScheduling": {"enabled": True},
    "network": {"autoMNNVLEnabled": True},
}
SET_RULES = test_set_rules.METADATA + test_set_rules.SET + test_set_rules.CLIQUES + test_set_rules.ORDER
PART_RULES = test_group_rules.SCHEDULERS + test_group_rules.GROUPS + test_group_rules.SHARING
REFUSED = SET_RULES + PART_RULES + test_topology_constraints.REFUSED


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def asked(cluster: LocalCluster, crds: object) -> AsyncIterator[Client]:
    """The API server, with all webhooks and both topologies of the tables."""
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
        await client.delete_collection(SETS, namespace=NAMESPACE, labels="")
        await client.delete(NAMESPACES, NAMESPACE, as_type=Object)


@asynccontextmanager
async def volcano_queues(client: Client, *names: str) -> AsyncIterator[None]:
    """Volcano's CRD of queues with open ones, as its controller would leave them."""
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
"""Paths that the API server's own checks and the schema may refuse before we are asked."""


def here(body: Body) -> Body:
    return {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE}}


def expect(said: str, verdict: AdmissionResult) -> None:
    """The words of the verdict, or the API server's own about the same field."""
    if said.startswith(OURS) or not said:
        assert re.sub(r"app-[a-z0-9]{5}", "app-xxxxx", said) == (
            OURS + verdict.message if verdict.errors else ""
        )
        return
    assert said.startswith("PodCliqueSet.grove.io "), said
    (first, *_) = verdict.errors
    assert first.path in BY_KUBERNETES
    last = first.path.rpartition(".")[2]
    assert last in said or f"{first.problem}: " in said


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[1][0][:60])
async def test_refused(asked: Client, row: tuple[dict[str, Any], list[str]]) -> None:
    changes, errors = row
    body = here(changed(workload(), changes))
    said = await refusal(asked, SETS, body, namespace=NAMESPACE)
    verdict = validation.on_create(default_set(body), FACTS)
    assert verdict.allowed or list(map(str, verdict.errors)) == errors
    expect(said, verdict)


@pytest.mark.parametrize("changes", test_create.ACCEPTED, ids=lambda changes: next(iter(changes), "")[:60])
async def test_accepted(asked: Client, changes: dict[str, Any]) -> None:
    body = here(changed(workload(), changes))
    if body.get("status"):
        del body["status"]  # which the schema would refuse
    assert await refusal(asked, SETS, body, namespace=NAMESPACE) == ""


async def stored(client: Client, body: Body) -> Body:
    """The set, made for real under a name of its own."""
    body = {**body, "metadata": {**body["metadata"], "generateName": "app-"}}
    del body["metadata"]["name"]
    return await client.create(SETS, body, namespace=NAMESPACE, as_type=dict)


async def update_refusal(client: Client, before: Body, after: Body) -> str:
    """What is said to a change of a stored set; it is really made if nothing is."""
    made = await stored(client, before)
    kept = {key: made["metadata"][key] for key in ("name", "resourceVersion")}
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


@pytest.mark.parametrize("row", test_update.REFUSED, ids=lambda row: row[2][0][:60])
async def test_update_refused(asked: Client, row: tuple[Body, Body, list[str]]) -> None:
    before, after = (here(changed(workload(), changes)) for changes in row[:2])
    said = await update_refusal(asked, before, after)
    expect(said, validation.on_update(before, default_set(after, before), FACTS))
    assert said


@pytest.mark.parametrize("row", test_update.ACCEPTED, ids=lambda row: next(iter(row[1]), "")[:60])
async def test_update_accepted(asked: Client, row: tuple[Body, Body]) -> None:
    before = here(changed(workload(), row[0]))
    after = changed(before, row[1])
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    for each in after["spec"]["template"]["cliques"]:
        if "topologySpreadConstraints" in each["spec"]["podSpec"]:
            each["spec"]["podSpec"]["topologySpreadConstraints"] = [constraint]
    assert await update_refusal(asked, before, after) == ""


async def test_a_set_is_not_made_nor_updated_above_the_limit_on_its_pods(asked: Client) -> None:
    counts = {"spec.replicas": 50_000, "spec.template.cliques[0].spec.replicas": 50_000}
    said = await refusal(asked, SETS, here(changed(bare(clique("a", 1)), counts)), namespace=NAMESPACE)
    assert said.startswith(OURS)
    assert "the set asks for 2500000000 pods" in said
    before = here(bare(clique("a", 1)))
    assert "asks for 60000 pods" in await update_refusal(
        asked, before, changed(before, {"spec.replicas": 60_000})
    )


async def test_defaults_are_stored(asked: Client) -> None:
    made = await stored(asked, here(bare(clique("a", 3), clique("b"))))
    template = made["spec"]["template"]
    assert template["terminationDelay"] == "4h0m0s"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    assert [each["spec"]["minAvailable"] for each in template["cliques"]] == [3, 2]
    assert template["cliques"][0]["spec"]["podSpec"]["terminationGracePeriodSeconds"] == 30
    await asked.delete(SETS, made["metadata"]["name"], namespace=NAMESPACE, as_type=Object)


async def test_warnings_reach_whoever_applies(asked: Client) -> None:
    body = here(changed(workload(), {"spec.template.cliques[0].spec.podSpec.restartPolicy": "Never"}))
    reply = await asked.raw("POST", f"{SETS.path(NAMESPACE)}?dryRun=All", msgspec.json.encode(body))
    assert "restartPolicy is Never" in reply.headers["Warning"]


LEVELS = [{"domain": "zone", "key": "example.com/zone"}, {"domain": "rack", "key": "example.com/zone"}]


@pytest.mark.parametrize(
    ("resource", "spec", "words"),
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
        (TOPOLOGIES, {"levels": LEVELS[:1]}, ""),
        (BINDINGS, {"levels": LEVELS[:1]}, ""),
    ],
)
async def test_topologies(asked: Client, resource: Resource, spec: Body, words: str) -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "judged"}}
    said = await refusal(asked, resource, {**body, "spec": spec})
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize("resource", [TOPOLOGIES, BINDINGS], ids=lambda resource: resource.kind)
async def test_a_topology_and_a_set_that_names_it_are_accepted_in_one_breath(
    asked: Client, resource: Resource
) -> None:
    """The cache of the webhooks cannot know it yet: the server is asked before anybody is refused."""
    for number in range(10):
        name = f"fresh-{number}"
        changes = {
            **ON_KAI,
            "spec.template.topologyConstraint": {"topologyName": name, "packDomain": "rack"},
        }
        body = here(changed(workload(), changes))
        assert f'"{name}" not found' in await refusal(asked, SETS, body, namespace=NAMESPACE)
        made = {**topology(name, "zone", "rack"), "kind": resource.kind}
        await asked.create(resource, made, as_type=Object)
        assert await refusal(asked, SETS, body, namespace=NAMESPACE) == ""
        await asked.delete(resource, name, as_type=Object)


async def test_a_queue_of_volcano_is_looked_for(asked: Client) -> None:
    body = here(changed(workload(), VOLCANO))
    assert await refusal(asked, SETS, body, namespace=NAMESPACE) == ""
    elsewhere = changed(body, {"metadata.annotations": {"scheduling.grove.io/volcano-queue": "nowhere"}})
    said = await refusal(asked, SETS, elsewhere, namespace=NAMESPACE)
    assert 'Volcano queue "nowhere" not found' in said


async def test_who_loses_by_the_end_of_a_topology_is_told_to_whoever_ends_it(asked: Client) -> None:
    await asked.create(TOPOLOGIES, topology("mourned", "zone", "rack"), as_type=Object)
    constraint = {"topologyName": "mourned", "packDomain": "rack"}
    made = await stored(asked, here(changed(workload(), {**ON_KAI, f"{T}.topologyConstraint": constraint})))
    whose = f"PodCliqueSet {NAMESPACE}/{made['metadata']['name']} loses rack"
    path = f"{TOPOLOGIES.path()}/mourned?dryRun=All"

    async def told() -> bool:
        reply = await asked.raw("DELETE", path)
        return whose in reply.headers.get("Warning", "")

    await eventually(told)  # as soon as the webhooks have seen the set
    await asked.delete(TOPOLOGIES, "mourned", as_type=Object)
    await asked.delete(SETS, made["metadata"]["name"], namespace=NAMESPACE, as_type=Object)
