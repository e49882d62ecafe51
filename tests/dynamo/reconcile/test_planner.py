"""Plans of a graph: writes, status and events that follow from a snapshot."""

from __future__ import annotations

import copy
from collections import Counter

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.configuration.types import Network
from grove.api.intents import Create, Delete, Patch
from grove.api.meta import Condition, ObjectMeta
from grove.api.types.podclique import PodClique, PodCliqueSpec, PodCliqueStatus
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupSpec,
    PodCliqueScalingGroupStatus,
)
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.backends.grove import GroveBackend
from grove.dynamo.conversion.objects import converted
from grove.dynamo.decode import decoder, normalize
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.reconcile.status import with_error
from grove.dynamo.render import auxiliary_objects, podcliqueset
from grove.dynamo.snapshot import ChildObject, GraphSnapshot, StoredGraph, snapshot_of
from grove.fabrics.registry import providers
from grove.plan.model import Plan
from tests.dynamo.builders import FACTS, KNOWN, component, deployment, engine, manifest, with_stored

BACKENDS = {"grove": GroveBackend()}


def snapshot(body, **more) -> GraphSnapshot:
    body = default_graph(copy.deepcopy(body), creating=True)
    body["metadata"] |= {"uid": "u", "generation": 1}
    body = converted(body, "v1beta1")  # as the API server stores it
    stored = msgspec.convert({"metadata": body["metadata"], "spec": body["spec"]}, StoredGraph)
    return replace(snapshot_of(stored, KNOWN, FACTS), **more)


def planned(found: GraphSnapshot, now: float = 0.0):
    return plan_graph(found, BACKENDS, now)


def done(found: GraphSnapshot, at_most: int | None = None) -> GraphSnapshot:
    """The snapshot after all writes of the plan, or after the first ones."""
    plan = planned(found)
    children, workload = dict(found.children), found.workload
    for intent in plan.intents[:at_most]:
        if isinstance(intent, Create) and intent.target.kind == "PodCliqueSet":
            workload = a_set({**intent.body, "metadata": _stored(intent.body)})
        elif isinstance(intent, Create):
            body = {**intent.body, "metadata": _stored(intent.body)}
            children[intent.target.kind, intent.target.name] = msgspec.convert(body, ChildObject)
        elif isinstance(intent, Delete):
            del children[intent.target.kind, intent.target.name]
        elif isinstance(intent, Patch) and intent.target.kind == "PodCliqueSet":
            assert workload is not None
            spec = {key: value for key, value in intent.body["spec"].items() if value is not None}
            spec["template"] = {key: value for key, value in spec["template"].items() if value is not None}
            body = {**msgspec.to_builtins(workload.metadata)}
            body["annotations"] = {**body.get("annotations", {}), **intent.body["metadata"]["annotations"]}
            workload = a_set({"metadata": body, "spec": spec})
    return replace(found, children=children, workload=workload)


def a_set(body) -> PodCliqueSet:
    return msgspec.json.decode(msgspec.json.encode(body), type=PodCliqueSet)


def _stored(body):
    return {**body["metadata"], "uid": body["metadata"]["name"], "generation": 1}


def status_of(plan):
    """The desired status of the graph."""
    (status_update,) = plan.status_updates
    return status_update.desired


def events_of(plan):
    """The events of a plan and of its status."""
    return (*plan.events, *(event for each in plan.status_updates for event in each.events))


def writes(plan):
    return [intent.id for intent in plan.intents]


def test_first_plan_creates_all_and_second_nothing():
    found = snapshot(deployment(component("Web", "frontend"), engine(["--tensor-parallel-size", "2"])))
    assert writes(planned(found)) == [
        "create ServiceAccount ns/app-k8s-service-discovery",
        "create Role ns/app-k8s-service-discovery-role",
        "create RoleBinding ns/app-k8s-service-discovery-binding",
        "create Service ns/app-web",
        "create Service ns/app-worker",
        "create ConfigMap ns/app-wait-leader-script",
        "create PodCliqueSet ns/app",
    ]
    assert writes(planned(done(found))) == []


def test_created_objects_are_owned_by_the_graph():
    for intent in planned(snapshot(deployment(component()))).intents:
        (owner,) = intent.body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("DynamoGraphDeployment", "u", True)


def test_deleted_or_edited_objects_are_restored():
    found = done(snapshot(deployment(component())))
    children = dict(found.children)
    del children["Service", "app-worker"]
    role = children["Role", "app-k8s-service-discovery-role"]
    children["Role", "app-k8s-service-discovery-role"] = replace(role, rules=[])
    assert writes(planned(replace(found, children=children))) == [
        "delete Role ns/app-k8s-service-discovery-role",
        "create Service ns/app-worker",
    ]


def test_template_change_keeps_replicas_of_set():
    before = done(snapshot(deployment(component(replicas=2))))
    body = deployment(component(replicas=5, main={"image": "dynamo:2.0.0"}))
    changed = with_stored(before, snapshot(body).stored)
    (patch,) = planned(changed).intents
    (clique,) = patch.body["spec"]["template"]["cliques"]
    assert clique["spec"]["replicas"] == 2
    assert clique["spec"]["podSpec"]["containers"][0]["image"] == "dynamo:2.0.0"
    assert writes(planned(done(changed))) == []


def test_edited_set_is_patched_back():
    found = done(snapshot(deployment(component())))
    assert found.workload is not None
    spec = msgspec.json.decode(msgspec.json.encode(found.workload.spec))
    spec["template"]["cliques"][0]["labels"]["nvidia.com/dynamo-component"] = "Mine"
    meddled = a_set({"metadata": found.workload.metadata, "spec": spec})
    assert writes(planned(replace(found, workload=meddled))) == ["patch PodCliqueSet ns/app"]


def clique(desired: int, **status) -> PodClique:
    spec = PodCliqueSpec(role_name="w", pod_spec=msgspec.Raw(b"{}"), replicas=desired, min_available=1)
    observed = {"observed_generation": 1, **status}
    meta = ObjectMeta(name="app-0-worker", namespace="ns", generation=1)
    return PodClique(metadata=meta, spec=spec, status=PodCliqueStatus(**observed))


def test_replicas_are_scaled_through_the_clique():
    found = done(snapshot(deployment(component(replicas=3))))
    found = replace(found, cliques={"app-0-worker": clique(1)})
    (patch,) = planned(found).intents
    assert (patch.id, patch.body) == ("patch PodClique ns/app-0-worker scale", {"spec": {"replicas": 3}})


ALL = {"replicas": 2, "ready_replicas": 2, "updated_replicas": 2, "scheduled_replicas": 2}


@pytest.mark.parametrize(
    ("part", "state", "reason"),
    [
        (None, "pending", "some_resources_are_not_ready"),
        (clique(2, observed_generation=0), "pending", "some_resources_are_not_ready"),
        (clique(2, **ALL), "successful", "all_resources_are_ready"),
        (clique(2, **{**ALL, "ready_replicas": 1}), "pending", "pods_not_ready"),
        (
            clique(2, **{**ALL, "ready_replicas": 1, "scheduled_replicas": 1}),
            "pending",
            "insufficient_capacity",
        ),
        (clique(2, **ALL, schedule_gated_replicas=1, conditions=()), "successful", "all_resources_are_ready"),
        (clique(2, replicas=2, schedule_gated_replicas=2), "pending", "insufficient_capacity"),
        (clique(2, **{**ALL, "updated_replicas": 1}), "pending", "updating"),
        (clique(2, **{**ALL, "replicas": 3}), "pending", "updating"),
    ],
)
def test_graph_state_follows_clique_status(part, state, reason):
    found = done(snapshot(deployment(component(replicas=2))))
    status = status_of(planned(replace(found, cliques={"app-0-worker": part} if part else {})))
    (ready,) = status.conditions
    assert (status.state, ready.reason) == (state, reason)


def test_group_state_follows_available_replicas():
    found = done(snapshot(deployment(component(multinode={}, replicas=2))))
    meta = ObjectMeta(name="app-0-worker", namespace="ns", generation=3)
    spec = PodCliqueScalingGroupSpec(clique_names=("worker-ldr", "worker-wkr"), replicas=2, min_available=1)
    counts = {"replicas": 2, "available_replicas": 2, "updated_replicas": 2, "scheduled_replicas": 2}
    group = PodCliqueScalingGroup(
        metadata=meta, spec=spec, status=PodCliqueScalingGroupStatus(observed_generation=3, **counts)
    )
    status = status_of(planned(replace(found, groups={"app-0-worker": group})))
    assert status.state == "successful"
    assert status.components["Worker"].available_replicas == 2
    assert status.components["Worker"].ready_replicas is None


def test_mixed_reasons_name_all_components():
    found = done(snapshot(deployment(component("Web", "frontend"), component(replicas=2))))
    found = replace(found, cliques={"app-0-worker": clique(2, **{**ALL, "ready_replicas": 1})})
    (ready,) = status_of(planned(found)).conditions
    assert ready.reason == "mixed_not_ready_reasons"
    assert ready.message == "Web: PodClique app-0-web does not exist yet; Worker: 1 of 2 ready"


def set_condition(status: str, reason: str) -> Condition:
    return Condition(type="TopologyLevelsUnavailable", status=status, reason=reason, message="words")


@pytest.mark.parametrize(
    ("condition", "status", "reason", "warned"),
    [
        (None, "Unknown", "TopologyConditionPending", False),
        (
            set_condition("False", "AllClusterTopologyLevelsAvailable"),
            "True",
            "AllTopologyLevelsAvailable",
            False,
        ),
        (
            set_condition("True", "ClusterTopologyLevelsUnavailable"),
            "False",
            "TopologyLevelsUnavailable",
            True,
        ),
        (set_condition("True", "ClusterTopologyNotFound"), "False", "TopologyDefinitionNotFound", True),
        (set_condition("Unknown", "ClusterTopologyNotFound"), "False", "TopologyDefinitionNotFound", True),
        (
            set_condition("Unknown", "TopologyAwareSchedulingDisabled"),
            "Unknown",
            "TopologyAwareSchedulingDisabled",
            True,
        ),
    ],
)
def test_topology_condition_of_set_is_reported(condition, status, reason, warned):
    found = done(snapshot(manifest("both")))
    assert found.workload is not None
    conditions = (condition,) if condition else ()
    workload = replace(found.workload, status=replace(found.workload.status, conditions=conditions))
    plan = planned(replace(found, workload=workload))
    by_type = {each.type: each for each in status_of(plan).conditions}
    levels = by_type["TopologyLevelsAvailable"]
    assert (levels.status, levels.reason) == (status, reason)
    assert [event.reason for event in events_of(plan)] == ([reason] if warned else [])
    if condition:
        assert by_type["grove.io/TopologyLevelsUnavailable"].status == condition.status


def test_applied_constraints_emit_one_event():
    found = snapshot(manifest("both"))
    (event,) = planned(found).events
    assert event.note == "Applied topology constraints: graph to zone, Frontend to zone, VllmWorker to block"
    assert events_of(planned(done(found))) == ()
    assert len(status_of(planned(done(found))).applied_topology_constraints) == 3


def test_existing_set_keeps_its_topology():
    found = done(snapshot(manifest("service-only")))
    other = replace(KNOWN, topologies={"other": ("zone", "block")})
    assert writes(planned(replace(found, context=other))) == []


def failed(found: GraphSnapshot):
    plan = planned(found, now=1.0)
    again = with_stored(found, replace(found.stored, status=status_of(plan)))
    repeated = planned(again, now=99.0)
    assert status_of(repeated) == status_of(plan)
    assert events_of(repeated) == ()
    assert (plan.intents, status_of(plan).state) == ((), "failed")
    return {each.type: each for each in status_of(plan).conditions}


@pytest.mark.parametrize(("default", "later"), [("", "kai-scheduler"), ("kai-scheduler", "")])
def test_existing_set_keeps_its_scheduler(default: str, later: str):
    """The scheduler of a clique is immutable: with another one, every later update would be rejected."""
    found = done(replace(snapshot(deployment(component())), context=replace(KNOWN, scheduler=default)))
    found = replace(found, context=replace(KNOWN, scheduler=later))
    assert writes(planned(found)) == []
    assert status_of(planned(found)).state != "failed"
    changed = deployment(component())
    changed["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]["image"] = "other:2"
    again = replace(snapshot(changed), context=found.context, workload=found.workload)
    (patch,) = [intent for intent in planned(again).intents if isinstance(intent, Patch)]
    named = [
        each["spec"]["podSpec"].get("schedulerName", "") for each in patch.body["spec"]["template"]["cliques"]
    ]
    assert named == [default]


def test_invalid_graph_fails_with_one_event():
    conditions = failed(snapshot(deployment(component(experimental={}), component("b", replicas=-1))))
    assert "spec.components[1].replicas" in conditions["Ready"].message
    assert conditions["UnsupportedFields"].status == "True"
    assert "replicas" not in conditions["UnsupportedFields"].message


def test_multinode_trtllm_without_gpus_fails():
    body = deployment(engine([], gpus=0, command=["python3", "-m", "dynamo.trtllm"]))
    assert "resources.limits[nvidia.com/gpu]: Required" in failed(snapshot(body))["Ready"].message


def test_undecodable_graph_fails():
    assert "spec.services" in failed(snapshot(manifest("superseded")))["Ready"].message


def test_graph_with_invalid_set_fails():
    body = deployment(component(main={"env": [{"name": "A=B"}]}))
    assert "env[0].name" in failed(snapshot(body))["Ready"].message


def test_graph_with_missing_claim_fails():
    body = deployment(component(), pvcs=[{"name": "models"}])
    assert (
        "spec.pvcs[0]: PersistentVolumeClaim models does not exist" in failed(snapshot(body))["Ready"].message
    )


def test_claim_is_created_and_existing_one_is_used():
    claim = {
        "name": "m",
        "create": True,
        "size": "1Gi",
        "storageClass": "s",
        "volumeAccessMode": "ReadWriteMany",
    }
    found = snapshot(deployment(component(), pvcs=[claim]))
    created = next(each for each in planned(found).intents if each.target.kind == "PersistentVolumeClaim")
    assert created.body["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    other = ChildObject(ObjectMeta(name="m", namespace="ns"), spec={})
    found = replace(found, children={("PersistentVolumeClaim", "m"): other})
    assert "PersistentVolumeClaim" not in {each.target.kind for each in planned(found).intents}


def test_failed_write_is_reported():
    found = snapshot(deployment(component()))
    plan = with_error(planned(found), found, "no room" * 500, now=1.0)
    status = status_of(plan)
    (ready,) = status.conditions
    assert (status.state, ready.message) == ("failed", "no room" * 500)
    assert ready.last_transition_time == "1970-01-01T00:00:01Z"
    (event,) = events_of(plan)
    assert (event.reason, len(event.note)) == ("ReconcileFailed", 1000)
    again = with_stored(found, replace(found.stored, status=status))
    repeated = with_error(planned(again), again, "no room" * 500, now=9.0)
    assert (status_of(repeated), events_of(repeated)) == (status, ())


def test_event_names_write_that_makes_it_true():
    plan = planned(snapshot(manifest("both")))
    (event,) = plan.events
    assert event.intent == plan.intents[-1].id == "create PodCliqueSet ns/app"
    assert (event.regarding.kind, event.regarding.uid) == ("DynamoGraphDeployment", "u")
    assert event.reporter == "dynamographdeployment-controller"


def test_set_of_gone_graph_is_deleted():
    workload = done(snapshot(deployment(component()))).workload
    (delete,) = planned(GraphSnapshot(None, workload=workload)).intents
    assert (delete.id, delete.uid) == ("delete PodCliqueSet ns/app", "app")
    assert planned(GraphSnapshot(None)) == Plan()


@pytest.fixture
def calls(monkeypatch) -> Counter[str]:
    """How often graphs are decoded, normalised and rendered."""
    counter: Counter[str] = Counter()

    def count(owner, name: str) -> None:
        function = getattr(owner, name)

        def counted(*args):
            counter[f"{owner.__name__.rpartition('.')[2]}.{name}"] += 1
            return function(*args)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (decoder, "read"),
        (normalize, "graph"),
        (podcliqueset, "workload"),
        (auxiliary_objects, "render"),
    ):
        count(owner, name)
    return counter


ONCE = {"decoder.read": 1, "normalize.graph": 1, "auxiliary_objects.render": 1, "podcliqueset.workload": 1}


def test_new_graph_is_parsed_and_rendered_once(calls):
    planned(snapshot(deployment(component())))
    assert calls == ONCE


def test_changed_graph_is_parsed_and_rendered_once(calls):
    before = done(snapshot(deployment(component())))
    secrets = {"late": frozenset({"docker.io"})}
    stored = snapshot(deployment(component(main={"image": "dynamo:2.0.0"}))).stored
    calls.clear()
    assert writes(planned(replace(with_stored(before, stored), pull_secrets=secrets))) == [
        "patch PodCliqueSet ns/app"
    ]
    assert calls == ONCE


def test_deleted_graph_has_no_plan():
    found = snapshot(deployment(component()))
    meta = replace(found.stored.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert planned(with_stored(found, replace(found.stored, metadata=meta))).intents == ()


def test_unknown_backend_fails():
    found = snapshot(deployment(component(), annotations={"nvidia.com/enable-grove": "false"}))
    assert failed(found)["Ready"].reason == "unsupported_workload_provider"


def test_backend_is_recorded_first_without_webhook():
    found = snapshot(deployment(component()))
    stored = replace(found.stored, metadata=replace(found.stored.metadata, annotations={}))
    first, *_ = planned(with_stored(found, stored)).intents
    assert first.body["metadata"]["annotations"] == {"nvidia.com/workload-provider": "grove"}


def test_ssh_key_secret_is_created_if_needed():
    body = deployment(engine([], command=["python3", "-m", "dynamo.trtllm"]))
    secret = next(
        each
        for each in planned(snapshot(body, ssh_key=("private", "public"))).intents
        if each.target.kind == "Secret"
    )
    assert secret.body["stringData"] == {"private.key": "private", "private.key.pub": "public"}
    assert "ownerReferences" not in secret.body["metadata"]


@pytest.mark.parametrize("stop", range(8))
def test_plan_after_crash_writes_the_rest(stop):
    found = snapshot(deployment(component("Web", "frontend"), engine(["--tensor-parallel-size", "2"])))
    whole = done(found)
    begun = done(found, at_most=stop)
    rest = done(begun)
    assert writes(planned(begun)) == writes(planned(found))[stop:]
    assert (rest.children, rest.workload) == (whole.children, whole.workload)


def test_set_with_gpus_gets_fabric_domains():
    facts = replace(FACTS, network=Network(auto_mnnvl_enabled=True), fabrics=providers(("nvidia",)))
    found = replace(snapshot(deployment(engine([], nodes=1))), facts=facts)
    assert "grove.io/auto-mnnvl" in planned(found).intents[-1].body["metadata"]["annotations"]
    body = deployment(engine(["--more"], nodes=1))
    changed = with_stored(done(found), snapshot(body).stored)
    assert writes(planned(changed)) == ["patch PodCliqueSet ns/app"]
