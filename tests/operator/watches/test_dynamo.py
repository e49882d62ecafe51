"""The watches of DynamoGraphDeployments: which change enqueues which deployment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from grove.api.meta import Condition, ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import PartialObjectMetadata, ResourceClaimTemplateObject
from grove.dynamo.api.kueue_topology import KueueTopology
from grove.dynamo.api.kueue_workload import KueueWorkload, KueueWorkloadStatus
from grove.dynamo.api.pull_secret import PullSecret
from grove.dynamo.api.status import GraphStatus
from grove.dynamo.keys import GRAPH
from grove.dynamo.snapshot import ChildObject, StoredGraph
from grove.kube.client.resource import CONFIG_MAPS
from grove.operator.caches.dynamo import LEADER_WORKER_SETS, GraphCaches
from grove.operator.caches.registry import Caches
from grove.operator.keys import GraphKey
from grove.operator.watches.dynamo import graph_watches
from grove.operator.watches.table import register
from tests.operator.watches.enqueued_keys import EnqueuedKeys, changed
from tests.operator.watches.test_workloads import a_clique
from tests.plan.builders import a_set, read_set
from tests.schedulers.builders import cluster_topology

FAILED, ON_GROVE = GraphKey("ns", "failed"), GraphKey("ns", "on-grove")


def a_graph(name: str, state: str, provider: str) -> StoredGraph:
    meta = ObjectMeta(name, "ns", name, "1", annotations={"nvidia.com/workload-provider": provider})
    return StoredGraph(meta, status=GraphStatus(state=state))


def a_child(name: str, **object_labels: str) -> ChildObject:
    return ChildObject(ObjectMeta(name, "ns", name, "2", labels=object_labels))


def test_rows_of_deployments_enqueue_at_once():
    caches, graph_caches = Caches(), GraphCaches()
    nodes = caches.nodes
    failed, on_grove = a_graph("failed", "failed", "component"), a_graph("on-grove", "successful", "grove")
    for graph in (failed, on_grove):
        graph_caches.graphs.apply_event("ADDED", graph)
    owner = OwnerReference("nvidia.com/v1beta1", "DynamoGraphDeployment", "on-grove", "u", controller=True)
    owned = msgspec.structs.replace(read_set(a_set("a")).metadata, owner_references=(owner,), generation=1)
    workload = msgspec.structs.replace(read_set(a_set("a")), metadata=owned)
    keys = EnqueuedKeys(graph_watches(caches, graph_caches))
    assert keys.take() == {FAILED: 0.0, ON_GROVE: 0.0}
    graphs, children = graph_caches.graphs, graph_caches.children[CONFIG_MAPS]
    template = b'{"metadata": {"name": "t", "namespace": "ns", "uid": "t"}, "spec": {"spec": {}}}'
    new_template = msgspec.json.decode(template, type=ResourceClaimTemplateObject)
    ours, of_others = a_child("ours", **{GRAPH: "on-grove"}), a_child("of-others")
    topology, of_none = cluster_topology("zone"), {labels.PART_OF: "x"}
    rows = [
        ("its spec", changed(graphs, on_grove, 2, generation=2), {ON_GROVE}),
        ("its labels", changed(graphs, on_grove, 3, generation=2, labels={"a": "b"}), {ON_GROVE}),
        ("nothing", changed(graphs, on_grove, 4, generation=2, labels={"a": "b"}), set()),
        ("its set", changed(caches.sets, workload, 5), {ON_GROVE}),
        ("the status of its set", changed(caches.sets, workload, 6), {ON_GROVE}),
        ("a clique", changed(caches.cliques, a_clique("wl-0-a", 0), 7), {ON_GROVE}),
        ("a clique of no set", changed(caches.cliques, a_clique("x", 0), 8, labels=of_none), set()),
        ("its object", changed(children, ours, 9), {ON_GROVE}),
        ("a new object of others", changed(children, of_others, 10), {FAILED}),
        ("an object of others", changed(children, of_others, 11), set()),
        ("a kind", children.clear, {FAILED, ON_GROVE}),
        ("nodes", lambda: nodes._use(nodes._new_list()), {FAILED}),
        ("a new template", changed(caches.claim_templates, new_template, 12), {FAILED}),
        ("a template", changed(caches.claim_templates, new_template, 13), set()),
        ("a new topology", changed(caches.topologies, topology, 14), {FAILED}),
        ("the status of a topology", changed(caches.topologies, topology, 15), set()),
        ("the spec of a topology", changed(caches.topologies, topology, 16, generation=2), {FAILED}),
        ("deletion of its set", changed(caches.sets, workload, 17, "DELETED"), {ON_GROVE}),
        ("deletion", changed(graphs, on_grove, 18, "DELETED"), {ON_GROVE}),
    ]
    for what, act, expected in rows:
        assert keys.after(act) == dict.fromkeys(expected, 0.0), what


def test_status_of_other_writer_enqueues_deployment():
    graph_caches, keys = GraphCaches(), set()

    def written(version: str) -> StoredGraph:
        return StoredGraph(ObjectMeta("g", "ns", "u", version), status=GraphStatus(state=version))

    graph_caches.graphs.apply_event("ADDED", written("1"))
    register(graph_watches(Caches(), graph_caches), keys.add)
    for version, ours in (("2", False), ("3", True)):
        keys.clear()
        if ours:
            graph_caches.graphs.apply_reply(written(version))
        graph_caches.graphs.apply_event("MODIFIED", written(version))
        assert keys == (set() if ours else {GraphKey("ns", "g")})


def test_changed_pull_secret_enqueues_deployments():
    graph_caches, keys = GraphCaches(pull_secrets=True), set()
    assert graph_caches.secrets is not None
    for namespace in ("ns", "elsewhere"):
        graph_caches.graphs.apply_event("ADDED", StoredGraph(ObjectMeta("g", namespace, namespace, "1")))
    register(graph_watches(Caches(), graph_caches), keys.add)

    def enqueued(kind: str, version: str, *registries: str) -> set[GraphKey]:
        keys.clear()
        meta = ObjectMeta("s", "ns", "u", version)
        graph_caches.secrets.apply_event(kind, PullSecret(meta, registries=frozenset(registries)))
        return set(keys)

    assert graph_caches.registries("ns") is None, "not synced"
    graph_caches.secrets.replace((), "1")
    assert graph_caches.registries("ns") == {}
    assert enqueued("ADDED", "2", "nvcr.io") == {GraphKey("ns", "g")}
    assert graph_caches.registries("ns") == {"s": {"nvcr.io"}}
    assert enqueued("MODIFIED", "3", "nvcr.io") == set()
    assert enqueued("MODIFIED", "4", "quay.io") == {GraphKey("ns", "g")}
    assert enqueued("DELETED", "5", "quay.io") == set()
    assert graph_caches.registries("ns") == {}


def test_kueue_topology_enqueues_deployments_without_grove():
    graph_caches, keys = GraphCaches(kueue=True), set()
    assert graph_caches.kueue is not None
    for name, provider in (("mine", "grove"), ("theirs", "component")):
        meta = ObjectMeta(name, "ns", name, "1", annotations={"nvidia.com/workload-provider": provider})
        graph_caches.graphs.apply_event("ADDED", StoredGraph(meta))
    register(graph_watches(Caches(), graph_caches), keys.add)

    def enqueued(act: Callable[[], None]) -> bool:
        keys.clear()
        act()
        assert keys <= {GraphKey("ns", "theirs")}
        return bool(keys)

    def applied(kind: str, version: str, *labels: str) -> bool:
        body = {"metadata": {"name": "dc", "resourceVersion": version}}
        body["spec"] = {"levels": [{"nodeLabel": label} for label in labels]}
        return enqueued(lambda: graph_caches.kueue.apply_event(kind, msgspec.convert(body, KueueTopology)))

    assert graph_caches.kueue_topologies is None
    assert enqueued(graph_caches.kueue.clear), "it is not served"
    assert graph_caches.kueue_topologies == {}
    assert enqueued(lambda: graph_caches.kueue.replace((), "1")), "it is served by now"
    assert applied("ADDED", "2", "zone", "rack")
    assert graph_caches.kueue_topologies == {"dc": ("zone", "rack")}
    assert not applied("MODIFIED", "3", "zone", "rack")
    assert applied("MODIFIED", "4", "zone")
    assert applied("DELETED", "5", "zone")


def a_workload(version: str, message: str, *owners: OwnerReference) -> KueueWorkload:
    condition = Condition(type="QuotaReserved", status="False", reason="Pending", message=message)
    meta = ObjectMeta("w", "ns", "w", version, owner_references=owners)
    return KueueWorkload(meta, status=KueueWorkloadStatus((condition,)))


def test_workload_of_kueue_enqueues_the_deployment_of_its_owner():
    caches, graph_caches = Caches(), GraphCaches(without_grove=True, kueue=True)
    for name, provider in (("queued", "component"), ("on-grove", "grove")):
        graph_caches.graphs.apply_event("ADDED", a_graph(name, "pending", provider))
    queued = GraphKey("ns", "queued")
    keys = EnqueuedKeys(graph_watches(caches, graph_caches))
    keys.take()
    pods, workloads = graph_caches.pods, graph_caches.kueue_workloads
    assert pods is not None
    assert workloads is not None
    sets = graph_caches.children[LEADER_WORKER_SETS]
    sets.apply_event("ADDED", a_child("set", **{GRAPH: "queued"}))
    keys.take()

    def pod(name: str, graph: str) -> Callable[[], None]:
        meta = ObjectMeta(name, "ns", name, "3", labels={GRAPH: graph})
        return partial(pods.apply_event, "ADDED", PartialObjectMetadata(meta))

    def workload(version: str, message: str, *owners: tuple[str, str, str]) -> Callable[[], None]:
        references = (OwnerReference("x/v1", *owner) for owner in owners)
        return partial(workloads.apply_event, "MODIFIED", a_workload(version, message, *references))

    of_pod, of_set = ("Pod", "pod", "pod"), ("LeaderWorkerSet", "set", "set")
    rows = [
        ("a pod", pod("pod", "queued"), {queued}),
        ("a pod on Grove", pod("other", "on-grove"), set()),
        ("a Workload of a pod", workload("4", "no quota", of_pod), {queued}),
        ("nothing", workload("5", "no quota", of_pod), set()),
        ("another message", workload("6", "no flavor", of_pod), {queued}),
        ("a Workload of a set", workload("7", "no flavor", of_set), {queued}),
        ("of a pod on Grove", workload("8", "no flavor", ("Pod", "other", "other")), set()),
        ("of a former pod", workload("9", "no flavor", ("Pod", "pod", "former")), set()),
        ("of another kind", workload("10", "no flavor", ("Job", "pod", "pod")), set()),
    ]
    for what, act, expected in rows:
        assert keys.after(act) == dict.fromkeys(expected, 0.0), what
