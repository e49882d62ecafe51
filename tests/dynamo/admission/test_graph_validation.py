"""Validation of a DynamoGraphDeployment, field by field, on creation and on update."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from tests.dynamo.builders import KNOWN, VLLM, alpha, component, deployment, engine, service


def errors_of(body, known=KNOWN):
    return [str(error) for error in graph_validation.on_create(body, known).errors]


MAIN = {"name": "main", "image": "dynamo:1.4.1"}

BAD = [
    (deployment(), "spec.components: Required value"),
    ({**deployment(component()), "spec": None}, "spec: Required value"),
    ({"metadata": {"name": "app"}}, "spec: Required value"),
    (
        {**deployment(component()), "spec": {"components": [component()], "services": {"Web": service()}}},
        "spec.services: Forbidden: spec.components is set as well",
    ),
    (deployment(*[component(f"w{i}") for i in range(26)]), "spec.components: Invalid value: 26: at most 25"),
    (
        deployment(component("Web"), component("web")),
        'spec.components[1].name: Duplicate value: "web"',
    ),
    (alpha(Web=service(), web=service()), 'spec.services[web]: Duplicate value: "web"'),
    (deployment(component("-web")), 'spec.components[0].name: Invalid value: "-web"'),
    (deployment(component(kind="router")), 'spec.components[0].type: Unsupported value: "router"'),
    (deployment(component(replicas=-1)), "spec.components[0].replicas: Invalid value: -1"),
    (deployment(component(minAvailable=0)), "spec.components[0].minAvailable: Invalid value: 0"),
    (deployment(component(minAvailable=3, replicas=2)), "minAvailable: Invalid value: 3: must not be more"),
    (deployment(component(multinode={"nodeCount": 0})), "multinode.nodeCount: Invalid value: 0"),
    (deployment(component(multinode={"nodeCount": 2**31 - 1})), "must not be more than 10000"),
    (deployment(component(replicas=2**31 - 1)), "must not be more than 100000"),
    (deployment(component(sharedMemorySize="-1Gi")), 'sharedMemorySize: Invalid value: "-1Gi"'),
    (deployment(component(sharedMemorySize="much")), 'sharedMemorySize: Invalid value: "much"'),
    (
        alpha(Web=service(resources={"limits": {"cpu": "one"}})),
        'spec.services[Web].resources.limits.cpu: Invalid value: "one"',
    ),
    (
        deployment(component(main={"resources": {"limits": {"nvidia.com/gpu": "1 GPU"}}})),
        "podTemplate.spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value",
    ),
    (
        deployment(component(main={"image": ""})),
        "spec.components[0].podTemplate.spec.containers[main].image: Required value",
    ),
    (
        deployment(component(main={"imagee": "x"})),
        "podTemplate.spec.containers[0].imagee: Forbidden: unknown field; did you mean image?",
    ),
    (
        deployment({"name": "W", "podTemplate": {"spec": {"containers": [MAIN, {"name": "log"}]}}}),
        "spec.components[0].podTemplate.spec.containers[log].image: Required value",
    ),
    (
        deployment(component(compilationCache={"pvcName": "cache"})),
        "compilationCache.mountPath: Required value",
    ),
    (deployment(component(compilationCache={})), "compilationCache.pvcName: Required value"),
    (deployment(component(), backendFramework="triton"), "spec.backendFramework: Unsupported value"),
    (
        deployment(component(main={"command": VLLM}), backendFramework="sglang"),
        'spec.backendFramework: Invalid value: "sglang": component Worker starts vllm',
    ),
    (
        deployment(
            component(
                main={"command": ["sh", "-c"], "args": ["python3 -m dynamo.vllm; python -m dynamo.sglang"]}
            )
        ),
        "starts several engines: vllm, sglang",
    ),
    (deployment(component(replica=2)), "spec.components[0].replica: Forbidden: unknown field; did you mean"),
    (deployment(component(replicas="2")), 'spec.components[0].replicas: Invalid value: "2": must be a whole'),
    (deployment(component(), envs="x"), 'spec.envs: Invalid value: "x": must be a list'),
    (alpha({"pvcs": [{"create": True}]}, Web=service()), "spec.pvcs[0].size: Required value"),
    (alpha(Web=service(sharedMemory={})), "spec.services[Web].sharedMemory.size: Required value"),
    (alpha(Web=service(volumeMounts=[{"name": "x"}])), "volumeMounts[0].mountPoint: Required value"),
    (
        deployment(component(), annotations={"nvidia.com/grove-update-strategy": "Rolling"}),
        "metadata.annotations[nvidia.com/grove-update-strategy]: Unsupported value",
    ),
    (
        deployment(component(), annotations={"nvidia.com/dynamo-operator-origin-version": "new"}),
        "must be a semantic version",
    ),
    # Fields of Dynamo that the operator does not implement.
    (
        deployment(component(scalingAdapter={"enabled": False})),
        "spec.components[0].scalingAdapter.enabled: Forbidden: unknown field; an object that is present",
    ),
    (deployment(component(experimental={})), "spec.components[0].experimental: Forbidden"),
    (deployment(component(), restart={"id": "1"}), "spec.restart: Forbidden: a new graph starts anyway"),
    (deployment(component(), restart={}), "spec.restart.id: Required value"),
    (
        deployment(component(), restart={"id": "1", "strategy": {"type": "Random"}}),
        "spec.restart.strategy.type: Unsupported value",
    ),
    (
        deployment(component(), restart={"id": "1", "strategy": {"order": ["Web"]}}),
        "spec.restart.strategy.order: Invalid value",
    ),
    (
        deployment(component(), restart={"id": "1", "strategy": {"type": "Parallel", "order": ["Worker"]}}),
        "spec.restart.strategy.order: Forbidden",
    ),
    (deployment(component(), providerOverride={}), "spec.providerOverride: Forbidden"),
    (
        deployment(component(), experimental={"kvTransferPolicy": {}}),
        "spec.experimental.kvTransferPolicy: Forbidden",
    ),
    *(
        (deployment(component(experimental={name: {}})), f"spec.components[0].experimental.{name}: Forbidden")
        for name in ("gpuMemoryService", "failover", "checkpoint")
    ),
    (alpha(Web=service(ingress={"enabled": True})), "spec.services[Web].ingress: Forbidden"),
    (
        deployment(engine(["--enable-elastic-ep"])),
        "containers[main].args: Forbidden: --enable-elastic-ep is not supported",
    ),
    (
        deployment(
            engine(["--tensor-parallel-size", "2"]),
            annotations={"nvidia.com/vllm-distributed-executor-backend": "Ray"},
        ),
        "spec.components[0].multinode: Forbidden: multi-node engines on Ray are not supported",
    ),
    (
        deployment(component(multinode={"leader": {"providerOverride": {}}})),
        "spec.components[0].multinode.leader: Forbidden",
    ),
    # Fields that only the Grove backend supports.
    (
        deployment(component(multinode={}), annotations={"nvidia.com/enable-grove": "False"}),
        "spec.components[0].multinode: Forbidden: needs Grove, which this graph opts out of, or Leader",
    ),
    (
        deployment(component(), annotations={"nvidia.com/enable-grove": "false"}, priorityClassName="high"),
        "spec.priorityClassName: Forbidden",
    ),
]


@pytest.mark.parametrize(("body", "why"), BAD)
def test_invalid_graph_is_rejected_with_path(body, why):
    assert any(why in error for error in errors_of(body)), errors_of(body)


def test_all_errors_are_reported_together():
    errors = errors_of(deployment(component("-a", replicas=-1), component("b", kind="x", minAvailable=0)))
    assert len(errors) == 4


@pytest.mark.parametrize(
    "body",
    [
        deployment(component()),
        deployment(component(kind=""), component("Web", "frontend"), component("Plan", "planner")),
        alpha(Web=service("main"), Worker=service(ingress={"enabled": False}, scalingAdapter={})),
        alpha(Web=service(checkpoint={"enabled": False}, failover={"enabled": False})),
        deployment(component(replicas=0, minAvailable=2)),
        deployment(component(multinode={})),
    ],
)
def test_valid_graph_is_admitted(body):
    assert errors_of(body) == []


def test_image_tag_without_version_is_a_warning():
    body = deployment(component(main={"image": "registry:5000/vllm:my-tag"}))
    (warning,) = graph_validation.on_create(body, KNOWN).warnings
    assert warning.startswith("spec.components[0].podTemplate.spec.containers[main].image: my-tag")


def test_fields_ignored_by_dynamo_are_a_warning():
    verdict = graph_validation.on_create(
        alpha(Web=service(autoscaling={"enabled": True}, dynamoNamespace="x")), KNOWN
    )
    assert [warning.partition(":")[0] for warning in verdict.warnings] == [
        "spec.services[Web].autoscaling is ignored",
        "spec.services[Web].dynamoNamespace is ignored",
    ]


def test_multinode_without_grove_uses_leader_worker_set():
    body = deployment(component(multinode={}), annotations={"nvidia.com/enable-grove": "false"})
    assert errors_of(body, replace(KNOWN, leader_worker_sets=True)) == []


STORED = deployment(component("Web", "frontend"), component("Worker", multinode={"nodeCount": 2}))


def changed(**fields):
    body = copy.deepcopy(STORED)
    body["spec"]["components"][1] |= fields
    return body


@pytest.mark.parametrize(
    ("new", "path"),
    [
        (changed(multinode={"nodeCount": 4}), "spec.components[1].multinode.nodeCount"),
        (changed(multinode=None), "spec.components[1].multinode.nodeCount"),
        (changed(minAvailable=2, replicas=2), "spec.components[1].minAvailable"),
        (changed(name="Other"), "spec.components[1]"),
        (deployment(component("Web", "frontend")), "spec.components[1]"),
        (deployment(*STORED["spec"]["components"], component("More")), "spec.components[2]"),
        (deployment(*STORED["spec"]["components"], backendFramework="vllm"), "spec.backendFramework"),
    ],
)
def test_update_of_immutable_field_is_rejected(new, path):
    errors = graph_validation.on_update(STORED, new, KNOWN).errors
    assert path in [error.path for error in errors]


@pytest.mark.parametrize(
    "new", [changed(replicas=7), changed(replicas=0), changed(sharedMemorySize="16Gi"), STORED]
)
def test_update_of_mutable_field_is_admitted(new):
    assert graph_validation.on_update(STORED, new, KNOWN).errors == ()


def test_update_of_backend_is_rejected():
    old = default_graph(STORED, creating=True)
    new = copy.deepcopy(old)
    new["metadata"]["annotations"]["nvidia.com/workload-provider"] = "component"
    (error,) = (
        error
        for error in graph_validation.on_update(old, new, replace(KNOWN, leader_worker_sets=True)).errors
        if "workload-provider" in error.path
    )
    assert error.detail == "the graph runs on grove, which cannot be changed"


def test_update_ignores_errors_of_old_object():
    old = changed(experimental={})
    new = copy.deepcopy(old)
    new["spec"]["components"][1]["replicas"] = 3
    assert graph_validation.on_update(old, new, KNOWN).errors == ()
    assert graph_validation.on_update(STORED, new, KNOWN).errors != ()


def test_missing_counts_are_defaulted():
    body = default_graph(deployment(component()), creating=True)
    assert body["metadata"]["annotations"] == {
        "nvidia.com/dynamo-operator-origin-version": "1.4.0",
        "nvidia.com/workload-provider": "grove",
    }
    assert body["spec"]["components"][0]["replicas"] == 1
    assert body["spec"]["components"][0]["minAvailable"] == 1


def test_backend_annotation_of_user_is_overwritten():
    asked = {"nvidia.com/workload-provider": "grove", "nvidia.com/enable-grove": "FALSE"}
    body = default_graph(deployment(component(), annotations=asked), creating=True)
    assert body["metadata"]["annotations"]["nvidia.com/workload-provider"] == "component"
    assert "minAvailable" not in body["spec"]["components"][0]


def test_update_does_not_set_backend_annotation():
    body = default_graph(deployment(component()), creating=False)
    assert body["metadata"]["annotations"] == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ("components", "services", "env", "topologyConstraint", "pvcs", "labels", "restart", "backendFramework")
)
INNER = st.sampled_from(
    (
        "name",
        "type",
        "podTemplate",
        "replicas",
        "multinode",
        "topologyConstraint",
        "componentType",
        "resources",
    )
)
SPECS = st.dictionaries(
    FIELDS, JSON | st.lists(st.dictionaries(INNER, JSON, max_size=4), max_size=2), max_size=4
)


@given(SPECS, SPECS)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_validation_never_raises(old, new):
    bodies = [{"metadata": {"name": "app", "namespace": "ns"}, "spec": spec} for spec in (old, new)]
    filled = [default_graph(body, creating=True) for body in bodies]
    graph_validation.on_create(filled[1], KNOWN)
    graph_validation.on_update(*filled, KNOWN)


@given(JSON)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_validation_never_raises_for_non_objects(body):
    assert graph_validation.on_create(default_graph(body, creating=True), KNOWN).errors


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (engine([], gpus=0), "has no GPUs, so no multi-node flags"),
        (engine([], command=["python3", "-m", "mine"]), "no engine was recognised"),
    ],
)
def test_multinode_without_flags_is_a_warning(body, why):
    (warning,) = graph_validation.on_create(deployment(body), KNOWN).warnings
    assert why in warning
