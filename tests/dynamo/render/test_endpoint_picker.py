"""The endpoint picker: rendered as by Dynamo's own renderer, and the rules of type `epp`."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.render import auxiliary_objects, endpoint_picker
from tests.dynamo.builders import (
    KNOWN,
    alpha,
    cliques,
    component,
    deployment,
    graph,
    main_of,
    rendered,
    service,
)
from tests.dynamo.render.test_examples import comparable
from tests.shared import shared_data

INLINE = {"config": {"plugins": [{"type": "picker"}], "schedulingProfiles": []}}
MINE = {"configMapRef": {"name": "mine"}}
BOOKKEEPING = {"nvidia.com/dynamo-graph-deployment-name", "nvidia.com/dynamo-component"}
"""Labels by which this layer finds the Services of a graph."""
HEADER = {"apiVersion": "inference.networking.x-k8s.io/v1alpha1", "kind": "EndpointPickerConfig"}


def example() -> dict[str, Any]:
    body = yaml.safe_load((shared_data("dynamo-epp") / "input.yaml").read_text())
    body["metadata"]["namespace"] = "ns"
    return body


def expected() -> list[Any]:
    """The set, and the Services."""
    return list(yaml.safe_load_all((shared_data("dynamo-epp") / "expected.yaml").read_text()))


def picker(config: Any = INLINE, **fields: Any) -> dict[str, Any]:
    return component("Epp", "epp", eppConfig=config, **fields)


def objects(body) -> dict[tuple[str, str], Any]:
    found = auxiliary_objects.render(graph(body))
    return {(each["kind"], each["metadata"]["name"]): each for each in (*found.owned, *found.shared)}


def messages(body, **known) -> list[str]:
    return [str(error) for error in graph_validation.on_create(body, replace(KNOWN, **known)).errors]


def test_example_with_picker_renders_as_in_dynamo():
    body = example()
    assert graph_validation.on_create(default_graph(body, creating=True), KNOWN).errors == ()
    workload, *services = expected()
    assert comparable(rendered(body)) == comparable(workload)
    for wanted in services:
        found = objects(body)["Service", wanted["metadata"]["name"]]
        labels = found["metadata"]["labels"]
        assert {key: value for key, value in labels.items() if key not in BOOKKEEPING} == wanted["metadata"][
            "labels"
        ]
        assert "annotations" not in found["metadata"]
        assert {key: value for key, value in found["spec"].items() if key != "type"} == wanted["spec"]


def test_pool_names_service_of_picker():
    body = example()
    pool = objects(body)["InferencePool", "qwen-pool"]
    assert (pool["apiVersion"], pool["metadata"]["namespace"]) == ("inference.networking.k8s.io/v1", "ns")
    assert pool["metadata"]["labels"] == {
        "nvidia.com/dynamo-graph-deployment-name": "qwen",
        "nvidia.com/dynamo-component": "Epp",
        "nvidia.com/dynamo-component-type": "epp",
    }
    assert pool["spec"] == {
        "targetPorts": [{"number": 8000}],
        "selector": {
            "matchLabels": {
                "nvidia.com/dynamo-component-class": "worker",
                "nvidia.com/dynamo-namespace": "ns-qwen",
            }
        },
        "endpointPickerRef": {"kind": "Service", "name": "qwen-epp", "port": {"number": 9002}},
    }
    workers = cliques(body)["vllmdecodeworker"]["labels"]
    assert pool["spec"]["selector"]["matchLabels"].items() <= workers.items()
    assert "nvidia.com/dynamo-component-class" not in cliques(body)["epp"]["labels"]


def test_inline_config_becomes_config_map():
    data = objects(example())["ConfigMap", "qwen-epp-config"]["data"]
    (text,) = data.values()
    assert list(data) == ["epp-config-dynamo.yaml"]
    assert text.splitlines()[:2] == [f"{key}: {value}" for key, value in HEADER.items()]
    given_config = example()["spec"]["components"][0]["eppConfig"]["config"]
    assert yaml.safe_load(text) == {**HEADER, **given_config}


def test_config_map_of_user_is_mounted():
    body = deployment(picker({"configMapRef": {"name": "mine", "key": "my.yaml"}}))
    assert messages(body) == []
    assert not [name for kind, name in objects(body) if kind == "ConfigMap"]
    volume = cliques(body)["epp"]["spec"]["podSpec"]["volumes"][0]
    assert volume == {
        "name": "epp-config",
        "configMap": {"name": "mine", "items": [{"key": "my.yaml", "path": "epp-config-dynamo.yaml"}]},
    }


def test_args_and_volumes_of_user():
    body = picker(main={"args": ["--pool-name", "other"]})
    body["podTemplate"]["spec"] |= {
        "volumes": [{"name": "hf-cache", "persistentVolumeClaim": {"claimName": "models"}}],
        "terminationGracePeriodSeconds": 5,
    }
    clique = cliques(deployment(body))["epp"]
    assert main_of(clique)["args"] == ["--pool-name", "other"]
    assert "command" not in main_of(clique)
    pod = clique["spec"]["podSpec"]
    assert pod["volumes"][1]["persistentVolumeClaim"] == {"claimName": "models"}
    assert (pod["terminationGracePeriodSeconds"], pod["serviceAccountName"]) == (5, "epp-serviceaccount")


def test_picker_has_rights_of_its_own():
    found = objects(deployment(picker()))
    assert found["RoleBinding", "epp-role-binding"]["subjects"][0]["name"] == "epp-serviceaccount"
    rules = found["Role", "epp-role"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert "inferencepools" in [resource for rule in rules for resource in rule["resources"]]


def test_picker_has_service_with_etcd_discovery():
    body = deployment(picker(), annotations={"nvidia.com/dynamo-discovery-backend": "etcd"})
    assert ("Service", "app-epp") in objects(body)


def test_v1alpha1_picker_is_rendered_alike():
    older = alpha(Epp=service("epp", eppConfig=INLINE, main={"image": "epp:1.4.0"}))
    newer = deployment(picker(main={"image": "epp:1.4.0"}))
    assert messages(older) == []
    assert rendered(older) == rendered(newer)
    assert objects(older) == objects(newer)


ONE = "an endpoint picker has one replica"
MISSING = "Required value: set config, or configMapRef to a ConfigMap of yours"
BOTH = "Forbidden: config is set as well: remove one of the two"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (deployment(picker(replicas=2)), f"spec.components[0].replicas: Invalid value: 2: {ONE}"),
        (deployment(picker(replicas=0)), f"spec.components[0].replicas: Invalid value: 0: {ONE}"),
        (deployment(picker(scalingAdapter={})), f"spec.components[0].scalingAdapter: Forbidden: {ONE}"),
        (
            deployment(picker(multinode={})),
            "spec.components[0].multinode: Forbidden: an endpoint picker runs on one node",
        ),
        (
            deployment(component("Epp", "epp")),
            f"spec.components[0].eppConfig: {MISSING}",
        ),
        (
            alpha(Epp=service("epp", eppConfig={})),
            f"spec.services[Epp].eppConfig: {MISSING}",
        ),
        (
            deployment(picker({**INLINE, **MINE})),
            f"spec.components[0].eppConfig.configMapRef: {BOTH}",
        ),
        (
            deployment(picker({"configMapRef": {"key": "x"}})),
            "spec.components[0].eppConfig.configMapRef.name: Required value",
        ),
        (
            deployment(component(eppConfig=INLINE)),
            "spec.components[0].eppConfig: Forbidden: only allowed for type epp",
        ),
        (
            deployment(picker(), component("Second", "epp", eppConfig=MINE)),
            "spec.components[1].type: Forbidden: a graph has at most one endpoint picker",
        ),
        (
            deployment(picker({"config": []})),
            'spec.components[0].eppConfig.config: Invalid value: "(list)": must be an object',
        ),
    ],
)
def test_invalid_picker_is_rejected(body, message):
    assert messages(body) == [message]


def test_picker_without_inference_pools_is_rejected():
    (message,) = messages(deployment(picker()), inference_pools=False)
    assert message == (
        "spec.components[0].type: Forbidden: needs InferencePools, and the cluster does not serve "
        "inference.networking.k8s.io/v1: install the CRDs of API group inference.networking.k8s.io"
    )
    assert messages(deployment(component()), inference_pools=False) == []


def test_deep_config_is_rejected():
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    (message,) = messages(deployment(picker({"config": {"plugins": deep}})))
    assert message.startswith("spec.components[0].eppConfig.config: Invalid value")
    assert "levels deep" in message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc1.", max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["plugins", "schedulingProfiles", "kind", "x"]), JSON))
def test_config_is_read_back_unchanged(config):
    body = deployment(picker({"config": config}))
    found = graph(body)
    text = endpoint_picker.config_map(found, found.components[0])
    assert text is not None
    picked = found.components[0].picker
    assert picked is not None
    assert yaml.safe_load(text["data"]["epp-config-dynamo.yaml"]) == {**(picked.config or {}), **HEADER}


@pytest.mark.parametrize(
    "text", ["1e3", "0x1f", "010", "1_0", ".5", "-1", "+1", "1:30", "yes", "null", "~", "2026-01-01"]
)
def test_text_like_a_number_is_quoted(text):
    """Also for parsers of other versions of YAML."""
    found = graph(deployment(picker({"config": {"x": text}})))
    written = endpoint_picker.config_map(found, found.components[0])
    assert written is not None
    line = written["data"]["epp-config-dynamo.yaml"].splitlines()[-1]
    assert line in (f'x: "{text}"', f"x: '{text}'")
