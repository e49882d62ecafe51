"""Which field of one version becomes which field of the other one, and what clients of both see."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.conversion.objects import PRESERVED, converted, is_written_as
from grove.dynamo.keys import WORKER_HASH
from grove.dynamo.worker_generation import generation
from tests.dynamo.builders import alpha, cliques, component, deployment, graph, rendered, service
from tests.dynamo.render.test_examples import NAMES, example

ALPHA, BETA = "v1alpha1", "v1beta1"


def other(body):
    return BETA if body["apiVersion"].endswith(ALPHA) else ALPHA


def without_paths(found):
    """The graph, with its components by name: in v1alpha1 they have no order, and other field paths."""
    components = tuple(
        sorted((replace(each, path="") for each in found.components), key=lambda each: each.name)
    )
    return replace(found, components=components, own_annotations={})


@pytest.mark.parametrize("name", NAMES)
def test_example_is_rendered_the_same_after_conversion(name):
    body = default_graph(example(name), creating=True)
    there = converted(body, other(body))
    back = converted(there, body["apiVersion"].partition("/")[2])
    assert back == body
    if other(body) == BETA:  # as it is stored
        assert without_paths(graph(there)) == without_paths(graph(body))
        assert generation(graph(there)) == generation(graph(body))
        assert rendered(there) == rendered(body)
    else:  # as admission sees it, with another hash and another order
        assert cliques(there).keys() == cliques(body).keys()
        for clique, expected in cliques(body).items():
            assert without_generation(cliques(there)[clique]) == without_generation(expected)


def without_generation(clique):
    text = msgspec.json.encode(clique, order="sorted").decode()
    return text.replace(clique["labels"].get(WORKER_HASH, "none"), "")


@pytest.mark.parametrize("name", NAMES)
def test_example_has_components_in_beta_and_services_in_alpha(name):
    body = example(name)
    services, components = (
        converted(body, ALPHA)["spec"]["services"],
        converted(body, BETA)["spec"]["components"],
    )
    assert sorted(services) == sorted(each["name"] for each in components)
    for each in components:
        assert services[each["name"]].get("replicas") == each.get("replicas")
        (main, *_) = each["podTemplate"]["spec"]["containers"]
        assert main["name"] == "main"
        assert main["image"]
    assert is_written_as(converted(body, ALPHA), ALPHA)
    assert not is_written_as(converted(body, ALPHA), BETA)


SERVICE = {
    "componentType": "worker",
    "subComponentType": "decode",
    "replicas": 2,
    "resources": {"limits": {"gpu": "4", "cpu": "2", "custom": {"rdma/ib": "1"}}},
    "envs": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "envFromSecret": "hf",
    "extraPodSpec": {
        "hostNetwork": True,
        "mainContainer": {"image": "x:1", "env": [{"name": "B", "value": "3"}]},
        "containers": [{"name": "proxy", "image": "y"}],
    },
    "extraPodMetadata": {"labels": {"team": "a"}},
    "volumeMounts": [
        {"name": "cache", "mountPoint": "/cache", "useAsCompilationCache": True},
        {"name": "data", "mountPoint": "/data"},
    ],
    "sharedMemory": {"size": "16Gi"},
    "scalingAdapter": {"enabled": True},
    "frontendSidecar": {"image": "z", "args": ["-x"], "envFromSecret": "s"},
    "readinessProbe": {"httpGet": {"path": "/", "port": 1}},
    "topologyConstraint": {"packDomain": "rack"},
}
COMPONENT = {
    "name": "Decode",
    "type": "decode",
    "replicas": 2,
    "podTemplate": {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "hostNetwork": True,
            "containers": [
                {
                    "name": "main",
                    "image": "x:1",
                    "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "4", "rdma/ib": "1"}},
                    "envFrom": [{"secretRef": {"name": "hf"}}],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}],
                    "readinessProbe": {"httpGet": {"path": "/", "port": 1}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                },
                {"name": "proxy", "image": "y"},
                {
                    "name": "sidecar-frontend",
                    "image": "z",
                    "args": ["-x"],
                    "envFrom": [{"secretRef": {"name": "s"}}],
                },
            ],
        },
    },
    "sharedMemorySize": "16Gi",
    "compilationCache": {"pvcName": "cache", "mountPath": "/cache"},
    "scalingAdapter": {},
    "frontendSidecar": "sidecar-frontend",
    "topologyConstraint": {"packDomain": "rack"},
}


def test_service_becomes_component():
    assert converted(alpha(Decode=SERVICE), BETA)["spec"]["components"] == [COMPONENT]


def test_component_becomes_service():
    (found,) = converted(deployment(COMPONENT), ALPHA)["spec"]["services"].values()
    assert found["resources"] == SERVICE["resources"]  # where Dynamo's planner counts GPUs
    same = (
        "componentType",
        "subComponentType",
        "replicas",
        "extraPodMetadata",
        "sharedMemory",
        "scalingAdapter",
    )
    for key in (*same, "frontendSidecar", "topologyConstraint"):
        assert found[key] == SERVICE[key]
    assert found["volumeMounts"] == SERVICE["volumeMounts"][:1]
    main = found["extraPodSpec"]["mainContainer"]
    assert (main["image"], [each["name"] for each in main["env"]]) == ("x:1", ["A", "B"])
    assert found["extraPodSpec"]["containers"] == SERVICE["extraPodSpec"]["containers"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"sharedMemory": {"disabled": True}}, {"sharedMemorySize": "0"}),
        ({"componentType": "frontend"}, {"type": "frontend"}),
        ({"componentType": "worker", "subComponentType": "other"}, {"type": "worker"}),
        ({"scalingAdapter": {"enabled": False}}, {}),
        ({"labels": {"a": "b"}, "ingress": {"enabled": False}, "serviceName": "x"}, {}),
        ({"resources": {"requests": {"gpu": 1, "gpuType": "amd.com/gpu"}}}, None),
    ],
    ids=str,
)
def test_fields_of_service(written, expected):
    (found,) = converted(alpha(A=written), BETA)["spec"]["components"]
    if expected is None:
        (main,) = found["podTemplate"]["spec"]["containers"]
        assert main == {"name": "main", "resources": {"requests": {"amd.com/gpu": 1}}}
    else:
        assert found == {"name": "A", **expected}
    assert converted(converted(alpha(A=written), BETA), ALPHA)["spec"]["services"]["A"] == written


def test_settings_of_graph_in_both_versions():
    spec = {
        "envs": [{"name": "A", "value": "1"}],
        "pvcs": [{"name": "p", "create": True}],
        "topologyConstraint": {"topologyProfile": "dc", "packDomain": "zone"},
        "backendFramework": "vllm",
    }
    stored = converted(alpha(spec, A=service()), BETA)
    assert stored["spec"]["env"] == spec["envs"]
    assert stored["spec"]["topologyConstraint"] == {"clusterTopologyName": "dc", "packDomain": "zone"}
    assert not {"envs", "pvcs", "services"} & stored["spec"].keys()
    assert converted(stored, ALPHA)["spec"] == {**spec, "services": {"A": service()}}


def test_status_in_both_versions():
    status = {"state": "pending", "components": {"A": {"replicas": 1, "componentNames": ["app-0-a"]}}}
    view = converted({**deployment(component("A")), "status": status}, ALPHA)
    assert view["status"]["services"] == {
        "A": {"replicas": 1, "componentNames": ["app-0-a"], "componentName": "app-0-a"}
    }
    assert (view["status"]["state"], "components" in view["status"]) == ("pending", False)
    assert converted(view, BETA)["status"] == status


def test_edit_in_one_version_is_seen_in_the_other():
    written = alpha(
        {"pvcs": [{"name": "p"}]}, A=service(labels={"team": "a"}, envs=[{"name": "X", "value": "1"}])
    )
    stored = converted(written, BETA)
    stored["spec"]["components"][0]["replicas"] = 5
    main = stored["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]
    main["image"], main["env"] = "new:2", []
    view = converted(stored, ALPHA)["spec"]
    found = view["services"]["A"]
    assert (found["replicas"], found["labels"], view["pvcs"]) == (5, {"team": "a"}, [{"name": "p"}])
    assert found["extraPodSpec"]["mainContainer"]["image"] == "new:2"
    (again,) = converted(converted(stored, ALPHA), BETA)["spec"]["components"]
    assert again["podTemplate"]["spec"]["containers"][0] == main, "a removed variable must not come back"


def test_edit_of_replicas_in_alpha_changes_nothing_else_of_beta():
    written = deployment(
        component("b", frontendSidecar="own"), component("a", "frontend"), env=[{"name": "X"}]
    )
    view = converted(written, ALPHA)
    view["spec"]["services"]["b"]["replicas"] = 3
    stored = converted(view, BETA)
    assert [each["name"] for each in stored["spec"]["components"]] == ["b", "a"]
    assert stored["spec"]["components"][0] == {**written["spec"]["components"][0], "replicas": 3}
    assert PRESERVED[ALPHA] not in stored["metadata"].get("annotations", {})


def test_spec_of_earlier_release_is_read_by_its_shape():
    """Without conversion, a manifest of v1alpha1 was stored in v1beta1 as it was."""
    stored = {**alpha(A=service()), "apiVersion": "nvidia.com/v1beta1"}
    view = converted(stored, ALPHA)
    assert view == {**stored, "apiVersion": "nvidia.com/v1alpha1"}
    (found,) = converted(stored, BETA)["spec"]["components"]
    assert (found["name"], found["type"]) == ("A", "worker")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"spec": 3}', '{"spec": {"services": {"A": 1}}}', "[" * 5000]
)
def test_annotation_of_other_content_is_no_obstacle(text):
    stored = deployment(component("A"), annotations={PRESERVED[ALPHA]: text})
    (found,) = converted(stored, ALPHA)["spec"]["services"].values()
    assert found["componentType"] == "worker"
    assert graph(stored).components[0].type == "worker"
