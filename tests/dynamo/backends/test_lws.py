"""Graphs without Grove: LeaderWorkerSets and Deployments, with Kueue's annotations or affinity."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.configuration.types import DynamoTopology, TopologyMode
from grove.api.intents import Create
from grove.api.meta import ObjectMeta
from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.backends import lws
from grove.dynamo.backends.lws import LwsBackend
from grove.dynamo.context import GraphContext
from grove.dynamo.conversion.objects import converted
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.snapshot import ChildObject, GraphSnapshot, StoredGraph, snapshot_of
from grove.rules.model import Facts
from tests.dynamo.builders import component, deployment, engine
from tests.dynamo.reconcile.test_planner import events_of, status_of

DECLINED = {"nvidia.com/enable-grove": "false"}
LABELS = {"zone": "example.com/zone", "rack": "example.com/rack"}
AFFINITY = DynamoTopology(mode=TopologyMode.AFFINITY, domain_to_label_mapping=LABELS)
KUEUE = replace(AFFINITY, mode=TopologyMode.KUEUE, queue_name="gpus")
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
DURING = "requiredDuringSchedulingIgnoredDuringExecution"
BACKENDS = {"component": LwsBackend()}


def snapshot(body, topology: DynamoTopology = AFFINITY, **more) -> GraphSnapshot:
    body = default_graph(body, creating=True)
    body["metadata"] |= {"uid": "u", "generation": 1}
    body = converted(body, "v1beta1")  # as the API server stores it
    stored = msgspec.convert({"metadata": body["metadata"], "spec": body["spec"]}, StoredGraph)
    found = snapshot_of(stored, GraphContext(topology, leader_worker_sets=True), Facts())
    return replace(found, **more)


def workloads(found: GraphSnapshot):
    """The rendered workloads by name."""
    intents = plan_graph(found, BACKENDS, 0.0).intents
    return {
        each.target.name: each.body
        for each in intents
        if isinstance(each, Create) and each.target.kind in ("Deployment", "LeaderWorkerSet")
    }


def packed(*components, **spec):
    return deployment(*components, annotations=dict(DECLINED), **spec)


def near(domain: str):
    return {"topologyConstraint": {"packDomain": domain}}


def test_component_is_rendered_as_deployment():
    (body,) = workloads(snapshot(packed(component(replicas=3)))).values()
    assert (body["kind"], body["metadata"]["name"], body["spec"]["replicas"]) == (
        "Deployment",
        "app-worker",
        3,
    )
    assert body["spec"]["selector"] == {"matchLabels": {"nvidia.com/selector": "app-worker"}}
    assert body["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    template = body["spec"]["template"]
    assert template["metadata"]["labels"].items() >= body["spec"]["selector"]["matchLabels"].items()
    assert "affinity" not in template["spec"]


def test_recreate_strategy_annotation_is_applied():
    asked = {**DECLINED, "nvidia.com/deployment-strategy": "Recreate"}
    (body,) = workloads(snapshot(deployment(component(), annotations=asked))).values()
    assert body["spec"]["strategy"] == {"type": "Recreate"}


def test_multinode_component_is_rendered_as_leader_worker_set():
    found = snapshot(packed(engine(["--tensor-parallel-size", "4"], nodes=4, replicas=2)))
    (body,) = workloads(found).values()
    assert (body["apiVersion"], body["kind"]) == ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    assert body["metadata"]["name"] == "app-worker-0"
    template = body["spec"]["leaderWorkerTemplate"]
    assert (body["spec"]["replicas"], template["size"]) == (2, 4)
    leader, worker = template["leaderTemplate"], template["workerTemplate"]
    assert [each["metadata"]["labels"]["role"] for each in (leader, worker)] == ["leader", "worker"]
    assert "nvidia.com/selector" not in leader["metadata"]["labels"]
    args = " ".join(worker["spec"]["containers"][0]["args"])
    assert "--master-addr $(LWS_LEADER_ADDRESS)" in args
    assert args.endswith("--node-rank $(LWS_WORKER_INDEX) --headless")
    (waiting,) = worker["spec"]["initContainers"]
    assert 'LEADER_HOST="${LWS_LEADER_ADDRESS}"' in waiting["command"][2]


def test_service_of_multinode_component_selects_leaders():
    intents = plan_graph(snapshot(packed(component(multinode={}))), BACKENDS, 0.0).intents
    (service,) = (each for each in intents if each.target.kind == "Service")
    assert service.body["spec"]["selector"]["role"] == "leader"


def test_affinity_packs_all_pods_of_single_node_component():
    (body,) = workloads(snapshot(packed(component(**near("rack"))))).values()
    affinity = body["spec"]["template"]["spec"]["affinity"]
    assert affinity["podAffinity"][DURING] == [
        {
            "topologyKey": "example.com/rack",
            "labelSelector": {"matchLabels": {"nvidia.com/selector": "app-worker"}},
        }
    ]
    exists = {"key": "example.com/rack", "operator": "Exists"}
    assert affinity["nodeAffinity"][DURING] == {"nodeSelectorTerms": [{"matchExpressions": [exists]}]}


def test_affinity_packs_each_multinode_replica():
    (body,) = workloads(snapshot(packed(component(multinode={}, **near("rack"))))).values()
    for template in ("leaderTemplate", "workerTemplate"):
        (term,) = body["spec"]["leaderWorkerTemplate"][template]["spec"]["affinity"]["podAffinity"][DURING]
        assert term == {
            "topologyKey": "example.com/rack",
            "labelSelector": {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "app-worker-0"}},
            "matchLabelKeys": ["leaderworkerset.sigs.k8s.io/group-key"],
        }


def test_affinity_for_graph_domain_selects_all_pods():
    found = snapshot(packed(component("Web", "frontend"), component(**near("rack")), **near("zone")))
    whole = {
        "topologyKey": "example.com/zone",
        "labelSelector": {"matchLabels": {"nvidia.com/dynamo-graph-deployment-name": "app"}},
    }
    for body in workloads(found).values():
        assert whole in body["spec"]["template"]["spec"]["affinity"]["podAffinity"][DURING]


def test_affinity_of_user_is_kept():
    gpu = {"key": "gpu", "operator": "In", "values": ["h100"]}
    term = {"matchExpressions": [gpu]}
    body = packed(component(**near("rack")))
    body["spec"]["components"][0]["podTemplate"]["spec"]["affinity"] = {
        "nodeAffinity": {DURING: {"nodeSelectorTerms": [term]}}
    }
    (found,) = workloads(snapshot(body)).values()
    (only,) = found["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][DURING]["nodeSelectorTerms"]
    assert only["matchExpressions"] == [gpu, {"key": "example.com/rack", "operator": "Exists"}]


def test_kueue_packs_each_multinode_replica():
    (body,) = workloads(snapshot(packed(component(main=GPU, multinode={}, **near("rack"))), KUEUE)).values()
    assert body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    for template in ("leaderTemplate", "workerTemplate"):
        found = body["spec"]["leaderWorkerTemplate"][template]
        kueue = {key: value for key, value in found["metadata"]["annotations"].items() if "kueue" in key}
        assert kueue == {
            "kueue.x-k8s.io/podset-required-topology": "example.com/rack",
            "kueue.x-k8s.io/podset-group-name": "app-worker",
        }
        assert "affinity" not in found["spec"]


def test_kueue_single_node_component_uses_affinity():
    (body,) = workloads(snapshot(packed(component(main=GPU, **near("rack"))), KUEUE)).values()
    assert body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert "podAffinity" in body["spec"]["template"]["spec"]["affinity"]


def errors_of(body, topology):
    known = GraphContext(topology, leader_worker_sets=True)
    return [
        str(error) for error in graph_validation.on_create(default_graph(body, creating=True), known).errors
    ]


def test_kueue_without_queue_is_rejected():
    body = packed(component(**near("rack")))
    (error,) = errors_of(body, replace(KUEUE, queue_name=""))
    assert error.startswith("metadata.labels[kueue.x-k8s.io/queue-name]: Required value")
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "mine"}
    assert errors_of(body, replace(KUEUE, queue_name="")) == []


def test_kueue_with_long_name_is_rejected():
    body = packed(component("w" * 40, main=GPU, multinode={}, **near("rack")))
    assert "at most 39" in errors_of(body, KUEUE)[0]


def test_opt_out_of_grove_needs_configuration():
    known = GraphContext(without_grove=False)
    (error,) = graph_validation.on_create(packed(component()), known).errors
    assert "config.dynamo.withoutGrove" in error.detail


def present(body, **status) -> ChildObject:
    meta = ObjectMeta(
        name=body["metadata"]["name"],
        namespace="ns",
        generation=1,
        annotations=body["metadata"]["annotations"],
    )
    return ChildObject(meta, spec=body["spec"], status={"observedGeneration": 1, **status})


ALL = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
AVAILABLE = {"conditions": [{"type": "Available", "status": "True"}]}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({**ALL, **AVAILABLE}, "all_resources_are_ready"),
        (ALL, "pods_not_ready"),
        ({**ALL, **AVAILABLE, "observedGeneration": 0}, "some_resources_are_not_ready"),
        ({**ALL, **AVAILABLE, "updatedReplicas": 1}, "updating"),
        ({**ALL, **AVAILABLE, "availableReplicas": 1}, "pods_not_ready"),
    ],
)
def test_graph_state_follows_deployment_status(status, reason):
    found = snapshot(packed(component(replicas=2, **near("rack"))))
    (body,) = workloads(found).values()
    found = replace(found, children={("Deployment", "app-worker"): present(body, **status)})
    desired = status_of(plan_graph(found, BACKENDS, 0.0))
    assert desired.conditions[0].reason == reason
    assert desired.components["Worker"].component_kind == "Deployment"
    (applied,) = desired.applied_topology_constraints
    assert (applied.topology_name, applied.applied_to) == ("example.com/rack", "Deployment/app-worker")


def test_only_changed_objects_are_written():
    found = snapshot(packed(component(replicas=2)))
    (body,) = workloads(found).values()
    there = {("Deployment", "app-worker"): present(body)}

    def patches(changed):
        intents = plan_graph(replace(snapshot(changed), children=there), BACKENDS, 0.0).intents
        return [each.body for each in intents if each.target.kind == "Deployment"]

    assert patches(packed(component(replicas=2))) == []
    ((spec, _),) = patches(packed(component(replicas=5)))
    assert (spec["path"], spec["value"]["replicas"]) == ("/spec", 5)
    ((spec, edition),) = patches(packed(component(replicas=2, main={"image": "dynamo:2.0.0"})))
    assert edition["path"] == "/metadata/annotations/nvidia.com~1last-applied-hash"


def test_multinode_without_backend_reports_failure():
    found = snapshot(packed(component(multinode={})))
    found = replace(found, context=replace(found.context, leader_worker_sets=False))
    plan = plan_graph(found, BACKENDS, 0.0)
    assert plan.intents == ()
    assert status_of(plan).conditions[0].reason == "no_multinode_orchestrator_available"


def reported_levels(topology: DynamoTopology, **known):
    """The condition and the warning events of a graph with a rack and a zone."""
    found = snapshot(packed(component(**near("rack")), topologyConstraint={"packDomain": "zone"}), topology)
    plan = plan_graph(replace(found, context=replace(found.context, **known)), BACKENDS, 0.0)
    levels = next(each for each in status_of(plan).conditions if each.type == "TopologyLevelsAvailable")
    return levels, [each.reason for each in events_of(plan) if each.warning]


@pytest.mark.parametrize(
    ("labels", "status", "reason", "warned"),
    [
        (None, "Unknown", "TopologyConditionPending", False),
        ({LABELS["rack"], LABELS["zone"]}, "True", "AllTopologyLevelsAvailable", False),
        ({LABELS["rack"]}, "False", "TopologyLevelsUnavailable", True),
    ],
)
def test_missing_node_labels_are_reported(labels, status, reason, warned):
    there = frozenset(labels) if labels is not None else None
    levels, warnings = reported_levels(AFFINITY, node_labels=there)
    assert (levels.status, levels.reason) == (status, reason)
    assert warnings == ([reason] if warned else [])
    if warned:
        assert levels.message == "No node has the label example.com/zone (zone)"


@pytest.mark.parametrize(
    ("topologies", "status", "reason", "words"),
    [
        (None, "Unknown", "TopologyConditionPending", "not read yet"),
        ({}, "False", "TopologyDefinitionNotFound", "No Topology of Kueue exists"),
        ({"dc": (LABELS["zone"], LABELS["rack"])}, "True", "AllTopologyLevelsAvailable", "every level"),
        ({"a": (LABELS["zone"],), "b": (LABELS["rack"],)}, "True", "AllTopologyLevelsAvailable", ""),
        (
            {"b": (LABELS["zone"],), "a": ()},
            "False",
            "TopologyLevelsUnavailable",
            "No Topology of Kueue has the level example.com/rack (rack); existing Topologies: a, b",
        ),
    ],
)
def test_missing_kueue_levels_are_reported(topologies, status, reason, words):
    levels, warnings = reported_levels(KUEUE, kueue_topologies=topologies)
    assert (levels.status, levels.reason) == (status, reason)
    assert words in levels.message
    assert warnings == ([reason] if status == "False" else [])


def test_component_is_rendered_once_per_plan(monkeypatch):
    found = snapshot(packed(component(replicas=2)))
    (body,) = workloads(found).values()
    children = {("Deployment", "app-worker"): msgspec.convert(body, ChildObject)}
    rendered, render = [], lws.workload
    monkeypatch.setattr(lws, "workload", lambda *args: rendered.append(args) or render(*args))
    late = {"late": frozenset({"docker.io"})}
    (patch,) = [
        each
        for each in plan_graph(replace(found, children=children, pull_secrets=late), BACKENDS, 0.0).intents
        if each.target.kind == "Deployment"
    ]
    assert patch.body[0]["value"]["template"]["spec"]["imagePullSecrets"] == [{"name": "late"}]
    assert len(rendered) == 1
