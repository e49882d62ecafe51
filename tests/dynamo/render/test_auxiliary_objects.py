"""Auxiliary objects of a graph, and labels of its pods."""

from __future__ import annotations

import pytest

from grove.dynamo.admission import graph_validation
from grove.dynamo.render import auxiliary_objects
from tests.dynamo.builders import KNOWN, alpha, cliques, component, deployment, env_of, graph, service

ETCD = {"nvidia.com/dynamo-discovery-backend": "etcd"}


def owned(body):
    return {
        (each["kind"], each["metadata"]["name"]): each for each in auxiliary_objects.render(graph(body)).owned
    }


def shared(body):
    return {
        (each["kind"], each["metadata"]["name"]): each
        for each in auxiliary_objects.render(graph(body)).shared
    }


def test_service_port_depends_on_component_type():
    found = owned(deployment(component("Web", "frontend"), component()))
    ports = {name: each["spec"]["ports"][0] for (kind, name), each in found.items() if kind == "Service"}
    assert {name: (port["name"], port["port"]) for name, port in ports.items()} == {
        "app-web": ("http", 8000),
        "app-worker": ("system", 9090),
    }


def test_etcd_discovery_needs_no_rbac_and_one_service():
    body = deployment(component("Web", "frontend"), component(), annotations=ETCD)
    assert set(owned(body)) == {("Service", "app-web")}
    clique = cliques(body)["worker"]
    assert "DYN_DISCOVERY_BACKEND" not in env_of(clique)
    assert "serviceAccountName" not in clique["spec"]["podSpec"]
    assert "nvidia.com/dynamo-discovery-enabled" not in clique["labels"]


def test_planner_rbac_is_shared_and_may_patch_graphs():
    found = shared(deployment(component("Plan", "planner")))
    assert ("ServiceAccount", "planner-serviceaccount") in found
    rule = found["Role", "planner-role"]["rules"][0]
    assert (rule["resources"], rule["verbs"][-1]) == (["dynamographdeployments"], "patch")
    clique = cliques(deployment(component("Plan", "planner")))["plan"]
    assert clique["spec"]["podSpec"]["serviceAccountName"] == "planner-serviceaccount"
    assert [port["name"] for port in clique["spec"]["podSpec"]["containers"][0]["ports"]] == [
        "metrics",
        "system",
    ]


def test_model_service_selects_its_pods():
    body = deployment(component(modelRef={"name": "Qwen/Qwen3-0.6B"}))
    ((_, name),) = shared(body)
    selector = shared(body)["Service", name]["spec"]["selector"]
    assert name == f"dynamo-model-{selector['nvidia.com/dynamo-base-model-hash']}"
    assert selector.items() <= cliques(body)["worker"]["labels"].items()


def test_user_labels_do_not_override_selector_labels():
    body = alpha(
        {"labels": {"a": "spec", "b": "spec", "c": "spec", "nvidia.com/selector": "mine"}},
        Web=service(labels={"b": "service", "c": "service"}, extraPodMetadata={"labels": {"c": "pod"}}),
    )
    labels = cliques(body)["web"]["labels"]
    assert (labels["a"], labels["b"], labels["c"]) == ("spec", "service", "pod")
    assert labels["nvidia.com/selector"] == "app-web"


METADATA = {"labels": {"c": "pod", "nvidia.com/dynamo-component": "x"}, "annotations": {"c": "pod"}}


def with_metadata(**spec):
    body = component("Web", "frontend")
    body["podTemplate"]["metadata"] = METADATA
    body = deployment(body)
    body["spec"] |= spec
    return body


@pytest.mark.parametrize(
    "body",
    [
        with_metadata(
            labels={"a": "spec", "b": "service", "c": "x"}, annotations={"a": "spec", "b": "service"}
        ),
        alpha(
            {"labels": {"a": "spec", "b": "spec"}, "annotations": {"a": "spec", "b": "spec"}},
            Web=service(
                labels={"b": "service", "c": "service"},
                annotations={"b": "service"},
                extraPodMetadata=METADATA,
            ),
        ),
    ],
)
def test_service_has_metadata_of_pod_template(body):
    """Of the user's metadata only: what is copied from the graph to its pods is not."""
    metadata = owned(body)["Service", "app-web"]["metadata"]
    assert metadata["annotations"] == {"a": "spec", "b": "service", "c": "pod"}
    assert metadata["labels"] == {
        "a": "spec",
        "b": "service",
        "c": "pod",
        "nvidia.com/dynamo-component": "Web",
        "nvidia.com/dynamo-graph-deployment-name": "app",
        "nvidia.com/dynamo-discovery-backend": "kubernetes",
        "nvidia.com/dynamo-discovery-enabled": "true",
    }


def test_metrics_label_can_be_disabled():
    body = deployment(component(), annotations={"nvidia.com/enable-metrics": "False"})
    assert "nvidia.com/metrics-enabled" not in cliques(body)["worker"]["labels"]


def test_global_namespace_component_uses_dynamo():
    clique = cliques(deployment(component(globalDynamoNamespace=True)))["worker"]
    assert clique["labels"]["nvidia.com/dynamo-namespace"] == env_of(clique)["DYN_NAMESPACE"] == "dynamo"


def test_name_too_long_for_label_is_rejected():
    body = deployment(component("w"))
    body["metadata"]["namespace"] = "n" * 61
    (error,) = graph_validation.on_create(body, KNOWN).errors
    assert "is the value of a pod label" in error.detail


def test_name_with_dots_is_rejected():
    body = deployment(component("w"))
    body["metadata"]["name"] = "a.b"
    (error,) = graph_validation.on_create(body, KNOWN).errors
    assert (error.path, "dots" in error.detail) == ("metadata.name", True)
