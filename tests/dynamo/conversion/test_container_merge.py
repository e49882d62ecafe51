"""`extraPodSpec.mainContainer` of v1alpha1 is merged over the fields of its service."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from grove.dynamo.admission import graph_validation
from grove.dynamo.conversion.container_merge import merged
from grove.dynamo.render import gpu_claims
from tests.dynamo.builders import (
    KNOWN,
    alpha,
    cliques,
    component,
    deployment,
    engine,
    graph,
    main_of,
    service,
)

FIXTURES = Path(__file__).parents[1] / "overrides"
TRTLLM = ["python3", "-m", "dynamo.trtllm"]


def fixture(name):
    return yaml.safe_load((FIXTURES / f"{name}.yaml").read_text())


@pytest.mark.parametrize("name", ["vllm", "sglang", "trtllm"])
def test_override_keeps_resources_of_service(name):
    body, expected = fixture(name), fixture(f"{name}.expected")
    assert graph_validation.on_create(body, KNOWN).errors == ()
    found = {clique: main_of(each) for clique, each in cliques(body).items()}
    for clique, fields in expected.items():
        left_out = {"env"} | ({"args"} if "args" not in fields else set())
        assert {key: value for key, value in found[clique].items() if key not in left_out} == fields
    assert found.keys() == expected.keys()


def test_trtllm_override_keeps_process_count():
    (line,) = main_of(cliques(fixture("trtllm"))["worker-ldr"])["args"]
    assert " --oversubscribe -n 8 -H " in line


@pytest.mark.parametrize(
    ("own", "override", "result"),
    [
        ({"limits": {"gpu": "4"}}, {}, {"limits": {"gpu": "4"}}),
        ({"limits": {"gpu": "4"}}, {"limits": {}}, {"limits": {"gpu": "4"}}),
        ({"limits": {"gpu": "4"}}, {"limits": {"gpu": 0}}, {"limits": {"gpu": 0}}),
        (
            {"limits": {"gpu": "4"}},
            {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            {"limits": {"gpu": "4", "cpu": "1"}, "requests": {"cpu": "1"}},
        ),
        ({"a": [1]}, {"a": []}, {"a": [1]}),
        ({"a": [1]}, {"a": [2, 3]}, {"a": [2, 3]}),
        ({"a": "x"}, {"a": ""}, {"a": "x"}),
        ({}, {"a": [], "b": {}}, {"a": [], "b": {}}),
        (
            {"livenessProbe": {"exec": {"command": ["a"]}, "periodSeconds": 5}},
            {"livenessProbe": {"httpGet": {"port": 1}}},
            {"livenessProbe": {"httpGet": {"port": 1}, "periodSeconds": 5}},
        ),
    ],
)
def test_override_is_merged_by_field(own, override, result):
    assert merged(own, override) == result


def resources(gpu):
    names, amounts = st.sampled_from(["cpu", "memory", gpu]), st.sampled_from(["1", "2", "4Gi"])
    of_side = st.dictionaries(names, amounts, max_size=3)
    return st.fixed_dictionaries({}, optional={"requests": of_side, "limits": of_side})


PROBE = st.fixed_dictionaries(
    {}, optional={"periodSeconds": st.integers(0, 9), "failureThreshold": st.integers(1, 9)}
)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "resources": resources("gpu"),
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
        "envFromSecret": st.just("token"),
        "envs": st.lists(st.sampled_from("AB"), unique=True).map(
            lambda names: [{"name": name, "value": "own"} for name in names]
        ),
        "volumeMounts": st.lists(st.sampled_from("xyz"), unique=True).map(
            lambda names: [{"name": name, "mountPoint": f"/{name}"} for name in names]
        ),
    },
)
OVERRIDE = st.fixed_dictionaries(
    {},
    optional={
        "resources": resources("nvidia.com/gpu"),
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
        "args": st.lists(st.sampled_from(["--a", "--b"]), max_size=2),
        "workingDir": st.sampled_from(["", "/w"]),
        "securityContext": st.sampled_from([{}, {"runAsUser": 0}]),
        "env": st.lists(st.sampled_from("BC"), unique=True).map(
            lambda names: [{"name": name, "value": "override"} for name in names]
        ),
        "volumeMounts": st.lists(st.sampled_from("uv"), unique=True).map(
            lambda names: [{"name": name, "mountPath": f"/{name}"} for name in names]
        ),
    },
)


def leaves(value, path=()):
    """Every value that is no object, by its path. Variables and mounts count by name, as they are merged."""
    if isinstance(value, list) and path in (("env",), ("volumeMounts",)):
        value = {each["name"]: each for each in value}
    if not isinstance(value, dict):
        return {path: value}
    return {at: leaf for key, inner in value.items() for at, leaf in leaves(inner, (*path, key)).items()}


@given(OWN, OVERRIDE)
def test_override_leaves_what_it_does_not_name(own, override):
    """In what is rendered, not only in what is decoded."""
    without = leaves(main_of(cliques(alpha(W=service(**own)))["w"]))
    found = leaves(main_of(cliques(alpha(W=service(main=override, **own)))["w"]))
    suffix = ("env", "DYN_NAMESPACE_WORKER_SUFFIX", "value")  # a hash of everything that a user writes
    named = {path: leaf for path, leaf in leaves(override).items() if leaf not in ("", [], 0)}
    # A probe that only the override has replaces the default of the component's type.
    probes = ("livenessProbe", "readinessProbe")
    replaced = {probe for probe in probes if override.get(probe) and not own.get(probe)}
    for path, leaf in without.items():
        if path not in named and path[0] not in replaced and path != suffix:
            assert found[path] == leaf, path
    for path, leaf in named.items():
        assert found[path] == leaf, path


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (
            deployment(engine([], gpus=0, command=TRTLLM)),
            "spec.components[0].podTemplate.spec.containers[main].resources.limits[nvidia.com/gpu]",
        ),
        (
            alpha(
                W=service(
                    main={"command": TRTLLM, "resources": {"limits": {"nvidia.com/gpu": 0}}},
                    resources={"limits": {"gpu": "4"}},
                    multinode={},
                )
            ),
            "spec.services[W].resources.limits.gpu",
        ),
    ],
)
def test_multinode_trtllm_without_gpus_is_rejected(body, path):
    (error,) = graph_validation.on_create(body, KNOWN).errors
    assert str(error) == f"{path}: Required value: multi-node TensorRT-LLM starts one process for each GPU"


def test_trtllm_claims_without_gpus_are_rejected():
    body = component(
        main={"command": TRTLLM, "resources": {"claims": [{"name": "nic"}]}}, multinode={"nodeCount": 2}
    )
    body["podTemplate"]["spec"]["resourceClaims"] = [{"name": "nic", "resourceClaimName": "shared"}]
    (problem,) = gpu_claims.problems(graph(deployment(body)), {})
    assert problem.startswith("spec.components[0]: TensorRT-LLM starts one process for each GPU, and the")


def test_every_compilation_cache_mount_is_kept():
    mounts = [{"name": each, "mountPoint": f"/{each}", "useAsCompilationCache": True} for each in "ab"]
    main = main_of(cliques(alpha(W=service(volumeMounts=mounts)))["w"])
    assert [each["mountPath"] for each in main["volumeMounts"]] == ["/b", "/a", "/dev/shm"]
