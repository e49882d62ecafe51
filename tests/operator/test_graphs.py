"""The Dynamo layer and who else may serve its kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from msgspec.structs import replace

from grove.api import labels
from grove.api.config import Dynamo, OperatorConfiguration
from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.pods import Pod
from grove.dynamo.kueue import KueueTopology
from grove.dynamo.registries import PullSecret
from grove.dynamo.seen import StoredGraph
from grove.dynamo.told import GraphStatus
from grove.kube.client import Client
from grove.kube.errors import ConfigError
from grove.kube.transport import Response
from grove.operator import ssh
from grove.operator.caches import Caches
from grove.operator.graph_caches import GraphCaches, GraphKey
from grove.operator.graph_layer import Layer, foreign
from grove.operator.graph_sight import Sight
from grove.operator.graph_wakes import wire
from grove.operator.nodes import Nodes
from grove.operator.process import refuse_foreign
from grove.plan.hashes import template_hash
from tests.dynamo.builders import component, deployment
from tests.dynamo.test_plan import done
from tests.dynamo.test_plan import seen as plan_seen
from tests.kube.replies import Replies, refused


def cluster(strategy: str | None) -> Client:
    """One that has the definition, with that conversion; None: it does not have it."""
    body = {"metadata": {"name": "d"}, "spec": {"conversion": {"strategy": strategy}}}
    answer = Response(200, {}, msgspec.json.encode(body)) if strategy else refused(404, "NotFound")
    return Client(Replies(lambda _: answer, lambda _: 0.0))


async def test_a_definition_with_a_conversion_webhook_is_somebody_elses():
    with pytest.raises(ConfigError, match=r"dynamo\.enabled: .* has a conversion webhook"):
        await refuse_foreign(cluster("Webhook"))


@pytest.mark.parametrize("strategy", ["None", None])
async def test_ours_or_none_is_nobody_elses(strategy):
    assert await foreign(cluster(strategy)) == ""
    await refuse_foreign(cluster(strategy))


async def test_a_server_that_does_not_answer_is_asked_again_later():
    await refuse_foreign(Client(Replies(lambda _: refused(403, "Forbidden"), lambda _: 0.0)))


def test_the_layer_is_off_unless_it_is_switched_on():
    assert Layer.of(OperatorConfiguration()) is None
    on = Layer.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
    assert on is not None
    assert not on.surroundings.without_grove


async def test_a_key_is_one_that_openssh_reads():
    private, public = await asyncio.to_thread(ssh.pair)
    key = serialization.load_ssh_private_key(private.encode(), None)
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    assert key.public_key().public_bytes(encoding, form).decode() == public.strip()


def test_a_status_that_somebody_else_writes_wakes_its_deployment():
    known, keys = GraphCaches(), set()

    def written(version: str) -> StoredGraph:
        return StoredGraph(ObjectMeta("g", "ns", "u", version), status=GraphStatus(state=version))

    known.graphs.apply_event("ADDED", written("1"))
    wire(Caches(), known, Nodes(), keys.add)
    for version, ours in (("2", False), ("3", True)):
        keys.clear()
        if ours:
            known.graphs.apply_reply(written(version))
        known.graphs.apply_event("MODIFIED", written(version))
        assert keys == (set() if ours else {GraphKey("ns", "g")})


def test_a_secret_for_another_registry_wakes_the_deployments_beside_it():
    known, keys = GraphCaches(pull_secrets=True), set()
    assert known.secrets is not None
    for namespace in ("ns", "elsewhere"):
        known.graphs.apply_event("ADDED", StoredGraph(ObjectMeta("g", namespace, namespace, "1")))
    wire(Caches(), known, Nodes(), keys.add)

    def woken(kind: str, version: str, *registries: str) -> set[GraphKey]:
        keys.clear()
        meta = ObjectMeta("s", "ns", "u", version)
        known.secrets.apply_event(kind, PullSecret(meta, registries=frozenset(registries)))
        return set(keys)

    assert known.registries("ns") is None, "nobody knows"
    known.secrets.replace((), "1")
    assert known.registries("ns") == {}
    assert woken("ADDED", "2", "nvcr.io") == {GraphKey("ns", "g")}
    assert known.registries("ns") == {"s": {"nvcr.io"}}
    assert woken("MODIFIED", "3", "nvcr.io") == set()
    assert woken("MODIFIED", "4", "quay.io") == {GraphKey("ns", "g")}
    assert woken("DELETED", "5", "quay.io") == set()
    assert known.registries("ns") == {}


async def test_who_may_not_read_secrets_serves_deployments_all_the_same(monkeypatch):
    known = GraphCaches(pull_secrets=True)
    monkeypatch.setattr("grove.operator.graph_caches._MOMENT", 0.0)
    for cache in known.all:
        cache.replace((), "1")
    await known.synced()
    assert known.secrets not in known.all, "what is made of Secrets is not kept"
    assert known.secrets in known.watched


def test_kueues_topologies_wake_those_that_grove_does_not_run_whenever_levels_come_or_go():
    known, keys = GraphCaches(kueue=True), set()
    assert known.kueue is not None
    for name, provider in (("mine", "grove"), ("theirs", "component")):
        meta = ObjectMeta(name, "ns", name, "1", annotations={"nvidia.com/workload-provider": provider})
        known.graphs.apply_event("ADDED", StoredGraph(meta))
    wire(Caches(), known, Nodes(), keys.add)

    def woken(act: Callable[[], None]) -> bool:
        keys.clear()
        act()
        assert keys <= {GraphKey("ns", "theirs")}
        return bool(keys)

    def told(kind: str, version: str, *labels: str) -> bool:
        body = {"metadata": {"name": "dc", "resourceVersion": version}}
        body["spec"] = {"levels": [{"nodeLabel": label} for label in labels]}
        return woken(lambda: known.kueue.apply_event(kind, msgspec.convert(body, KueueTopology)))

    assert known.kueue_topologies is None
    assert woken(known.kueue.clear), "it is not served"
    assert known.kueue_topologies == {}
    assert woken(lambda: known.kueue.replace((), "1")), "it is served by now"
    assert told("ADDED", "2", "zone", "rack")
    assert known.kueue_topologies == {"dc": ("zone", "rack")}
    assert not told("MODIFIED", "3", "zone", "rack")
    assert told("MODIFIED", "4", "zone")
    assert told("DELETED", "5", "zone")


@pytest.mark.parametrize(
    ("phase", "latest", "started"),
    [("Running", True, {"Worker"}), ("Running", False, set()), ("Pending", True, set())],
)
async def test_a_component_has_started_when_a_pod_of_its_latest_template_has(phase, latest, started):
    made = done(plan_seen(deployment(component()))).workload
    owner = OwnerReference("nvidia.com/v1beta1", "DynamoGraphDeployment", "app", "u", controller=True)
    made = replace(made, metadata=replace(made.metadata, resource_version="1", owner_references=(owner,)))
    caches, known = Caches(), GraphCaches(pull_secrets=True)
    assert known.secrets is not None
    caches.sets.apply_event("ADDED", made)
    (clique,) = made.spec.template.cliques
    about = {
        labels.PART_OF: "app",
        labels.TEMPLATE_HASH: template_hash(clique, "") if latest else "older",
        "nvidia.com/dynamo-component": "Worker",
    }
    pod = {"metadata": {"name": "p", "namespace": "ns", "labels": about, "resourceVersion": "1"}}
    caches.pods.apply_event("ADDED", msgspec.convert({**pod, "status": {"phase": phase}}, Pod))
    stored = plan_seen(deployment(component())).stored
    sight = Sight(caches, known, Layer(), Nodes(), {GraphKey("ns", "app"): "app"})
    known.secrets.replace((), "1")
    assert (await sight.of(GraphKey("ns", "app"), stored)).started == set(), "nobody asks"
    secret = PullSecret(ObjectMeta("s", "ns", "s", "2"), registries=frozenset({"docker.io"}))
    known.secrets.apply_event("ADDED", secret)
    seen = await sight.of(GraphKey("ns", "app"), stored)
    assert seen.started == started
    assert seen.pull_secrets == {"s": {"docker.io"}}
