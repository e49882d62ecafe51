"""DynamoGraphDeployments: the conflict with Dynamo's own operator, and snapshots."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from msgspec.structs import replace

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.dynamo.api.pull_secret import PullSecret
from grove.dynamo.reconcile.planner import plan_graph
from grove.kube.client.client import Client
from grove.kube.client.resource import SERVICES
from grove.kube.client.transport import Request, Response
from grove.kube.client.undecodable import Undecodable
from grove.kube.errors import ConfigError
from grove.kube.testing.virtual_time import run_in_virtual_time
from grove.operator.caches.dynamo import GraphCaches
from grove.operator.caches.registry import Caches
from grove.operator.dynamo_settings import DynamoSettings, dynamo_operator_conflict
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import GraphKey
from grove.operator.observers import ssh_keys
from grove.operator.observers.dynamo import GraphObserver
from grove.operator.process import reject_dynamo_operator
from grove.operator.reconcilers.dynamo import _checked_conflict
from grove.plan.desired.template_hash import template_hash
from tests.dynamo.builders import component, deployment
from tests.dynamo.reconcile.test_planner import done
from tests.dynamo.reconcile.test_planner import snapshot as plan_snapshot
from tests.kube.executor.stub_transport import StubTransport, refused
from tests.upgrade import recordings
from tests.upgrade.planning import Upgraded


def cluster(strategy: str | None) -> Client:
    """A cluster whose CRD has this conversion strategy; None: without the CRD."""
    body = {"metadata": {"name": "d"}, "spec": {"conversion": {"strategy": strategy}}}
    answer = Response(200, {}, msgspec.json.encode(body)) if strategy else refused(404, "NotFound")
    return Client(StubTransport(lambda _: answer, lambda _: 0.0))


async def test_conversion_webhook_is_rejected_as_dynamo_operator():
    with pytest.raises(ConfigError, match=r"dynamo\.enabled: .* has a conversion webhook"):
        await reject_dynamo_operator(cluster("Webhook"))


@pytest.mark.parametrize("strategy", ["None", None])
async def test_crd_without_conversion_webhook_is_accepted(strategy):
    assert await dynamo_operator_conflict(cluster(strategy)) == ""
    await reject_dynamo_operator(cluster(strategy))


async def test_unreadable_crd_does_not_fail_the_start():
    await reject_dynamo_operator(Client(StubTransport(lambda _: refused(403, "Forbidden"), lambda _: 0.0)))


def test_dynamo_is_disabled_by_default():
    assert DynamoSettings.of(OperatorConfiguration()) is None
    on = DynamoSettings.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
    assert on is not None
    assert not on.context.without_grove


async def test_ssh_key_pair_has_openssh_format():
    private, public = await asyncio.to_thread(ssh_keys.generate_key_pair)
    key = serialization.load_ssh_private_key(private.encode(), None)
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    assert key.public_key().public_bytes(encoding, form).decode() == public.strip()


async def test_unsynced_secrets_do_not_block_deployments(monkeypatch):
    graph_caches = GraphCaches(pull_secrets=True)
    monkeypatch.setattr("grove.timing.SECRETS_SYNC_TIMEOUT", 0.0)
    for cache in graph_caches.all:
        cache.replace((), "1")
    await graph_caches.synced()
    assert graph_caches.secrets not in graph_caches.all, "Secrets that are written are not cached"
    assert graph_caches.secrets in graph_caches.watched


async def test_unreadable_pools_do_not_block_deployments(monkeypatch):
    graph_caches = GraphCaches()
    monkeypatch.setattr("grove.timing.OPTIONAL_SYNC_TIMEOUT", 0.0)
    (pools,) = graph_caches.optional
    for cache in graph_caches.all:
        if cache is not pools:
            cache.replace((), "1")
    await graph_caches.synced()
    assert graph_caches.inference_pools, "not known to be absent"
    pools.clear()
    assert not graph_caches.inference_pools
    pools.replace((), "1")
    assert graph_caches.inference_pools


@pytest.mark.parametrize(
    ("phase", "latest", "started"),
    [("Running", True, {"Worker"}), ("Running", False, set()), ("Pending", True, set())],
)
async def test_component_started_if_pod_of_latest_template_runs(phase, latest, started):
    workload = done(plan_snapshot(deployment(component()))).workload
    owner = OwnerReference("nvidia.com/v1beta1", "DynamoGraphDeployment", "app", "u", controller=True)
    workload = replace(
        workload, metadata=replace(workload.metadata, resource_version="1", owner_references=(owner,))
    )
    caches, graph_caches = Caches(), GraphCaches(pull_secrets=True)
    assert graph_caches.secrets is not None
    caches.sets.apply_event("ADDED", workload)
    (clique,) = workload.spec.template.cliques
    about = {
        labels.PART_OF: "app",
        labels.TEMPLATE_HASH: template_hash(clique, "") if latest else "older",
        "nvidia.com/dynamo-component": "Worker",
    }
    pod = {"metadata": {"name": "p", "namespace": "ns", "labels": about, "resourceVersion": "1"}}
    caches.pods.apply_event("ADDED", msgspec.convert({**pod, "status": {"phase": phase}}, Pod))
    stored = plan_snapshot(deployment(component())).stored
    assert stored is not None
    graph_caches.graphs.apply_event(
        "ADDED", replace(stored, metadata=replace(stored.metadata, resource_version="1"))
    )
    observer = GraphObserver(caches, graph_caches, DynamoSettings(), KeyStates())
    graph_caches.secrets.replace((), "1")
    assert (await observer.observe(GraphKey("ns", "app"))).started == set(), "there is no new Secret"
    secret = PullSecret(ObjectMeta("s", "ns", "s", "2"), registries=frozenset({"docker.io"}))
    graph_caches.secrets.apply_event("ADDED", secret)
    snapshot = await observer.observe(GraphKey("ns", "app"))
    assert snapshot.started == started
    assert snapshot.pull_secrets == {"s": {"docker.io"}}


def test_conflict_check_is_retried_until_the_server_answers():
    answers = iter([refused(403, "Forbidden"), refused(403, "Forbidden"), refused(404, "NotFound")])
    client = Client(StubTransport(lambda _: next(answers), lambda _: 0.0))
    assert run_in_virtual_time(_checked_conflict(client)) == ""


@pytest.mark.parametrize("why", ["deleted", "not served", "undecodable"])
async def test_set_is_deleted_only_with_its_deployment(why):
    """While the kind is not served, deployments may exist although none is in the cache."""
    upgraded, requests = Upgraded(recordings.load("0.1.0/dynamo")), []

    def refuse(request: Request) -> Response:
        requests.append(request.verb)
        return refused(403, "Forbidden")

    assert upgraded.graphs is not None
    upgraded.add_graphs(StubTransport(refuse, lambda _: 0.0))
    graphs = upgraded.graphs.graphs
    (stored,) = graphs
    key = GraphKey(stored.metadata.namespace, stored.metadata.name)
    if why == "not served":
        graphs.clear()
    else:
        graphs.apply_event("DELETED", stored)
    if why == "undecodable":
        version = replace(stored.metadata, resource_version="9")
        graphs.apply_undecodable("ADDED", Undecodable("spec: expected an object", version))
    await upgraded.controller.engine.reconcile(key)
    assert requests == (["delete"] if why == "deleted" else [])


def test_failed_write_is_reported_without_second_plan(monkeypatch):
    sent, plans = [], []

    def refuse(request: Request) -> Response:
        sent.append((request.verb, str(request.body)))
        return refused(403, "Forbidden")

    def counted(*args):
        plans.append(plan_graph(*args))
        return plans[-1]

    async def two_passes() -> None:
        upgraded = Upgraded(recordings.load("0.1.0/dynamo"))
        assert upgraded.graphs is not None
        (stored,) = upgraded.graphs.graphs
        services = upgraded.graphs.children[SERVICES]
        services.apply_event("DELETED", next(iter(services)))
        upgraded.add_graphs(StubTransport(refuse, lambda _: 0.0))
        for _ in range(2):
            await upgraded.controller.engine.reconcile(
                GraphKey(stored.metadata.namespace, stored.metadata.name)
            )
            await asyncio.sleep(1)  # until the status is due

    monkeypatch.setattr("grove.operator.reconcilers.dynamo.plan_graph", counted)
    run_in_virtual_time(two_passes())
    assert [verb for verb, _ in sent] == ["create", "create", "patch"]
    assert "failed_to_reconcile_the_resources" in sent[-1][1]
    assert len(plans) == 2, "one for each pass"
