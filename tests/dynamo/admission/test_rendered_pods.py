"""Duplicates in rendered pods that the API server refuses, and the compilation cache, which adds none."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.dynamo.admission import graph_validation
from tests.dynamo.builders import KNOWN, VLLM, alpha, cliques, component, deployment, engine, main_of, service

POD = "spec.components[0].podTemplate.spec"
CACHE = "/root/.cache/vllm"


def pod(**fields):
    body = component()
    body["podTemplate"]["spec"] |= fields
    return deployment(body)


def cached(mount, path="", **fields):
    """A component with a compilation cache whose container mounts something itself."""
    cache = {"pvcName": "cache", "mountPath": path} if path else {"pvcName": "cache"}
    body = component(main={"command": VLLM, "volumeMounts": [mount]}, compilationCache=cache)
    body["podTemplate"]["spec"] |= fields
    return deployment(body)


def messages(body):
    return [str(error) for error in graph_validation.on_create(body, KNOWN).errors]


PORT = {"containerPort": 80}
MOUNTS = [{"name": name, "mountPath": "/data"} for name in "ab"]
TWICE = {"name": "a", "mountPoint": "/a"}
SSH = {"name": "mine", "mountPath": "/ssh-pk"}
DUPLICATES = [
    (pod(volumes=[{"name": "v", "emptyDir": {}}] * 2), f'{POD}.volumes: Duplicate value: "v"'),
    (pod(imagePullSecrets=[{"name": "s"}] * 2), f'{POD}.imagePullSecrets: Duplicate value: "s"'),
    (pod(hostAliases=[{"ip": "::1"}] * 2), f'{POD}.hostAliases: Duplicate value: "::1"'),
    (
        deployment(component(main={"volumeMounts": MOUNTS})),
        f'{POD}.containers[main].volumeMounts: Duplicate value: "/data"',
    ),
    (
        deployment(component(main={"ports": [PORT, {**PORT, "protocol": "TCP"}]})),
        f'{POD}.containers[main].ports: Duplicate value: "80/TCP"',
    ),
    (
        pod(
            containers=[
                {"name": "main", "image": "x:1.0.0"},
                {"name": "b", "image": "x", "env": [{"name": "A"}] * 2},
            ]
        ),
        f'{POD}.containers[b].env: Duplicate value: "A"',
    ),
    (
        pod(initContainers=[{"name": "i", "image": "x"}] * 2),
        f'{POD}.initContainers: Duplicate value: "i"',
    ),
    (alpha(W=service(volumeMounts=[TWICE] * 2)), 'spec.services[W].volumeMounts: Duplicate value: "/a"'),
    (
        alpha(W=service(main={"volumeMounts": MOUNTS})),
        'spec.services[W].extraPodSpec.mainContainer.volumeMounts: Duplicate value: "/data"',
    ),
]


@pytest.mark.parametrize(("body", "message"), DUPLICATES)
def test_duplicate_that_server_refuses_is_rejected(body, message):
    assert messages(body) == [message]


def test_duplicate_of_what_operator_adds_is_explained():
    body = engine([], command=["python3", "-m", "dynamo.trtllm"])
    body["podTemplate"]["spec"]["containers"][0]["volumeMounts"] = [SSH]
    (message,) = messages(deployment(body))
    assert message == (
        f'{POD}.containers[main].volumeMounts: Duplicate value: "/ssh-pk": '
        "the operator adds one: rename or remove yours"
    )


def test_known_duplicate_does_not_block_updates():
    old = deployment(component(main={"volumeMounts": MOUNTS}))
    new = copy.deepcopy(old)
    new["spec"]["components"][0]["replicas"] = 2
    assert graph_validation.on_update(old, new, KNOWN).errors == ()
    new["spec"]["components"][0]["podTemplate"]["spec"]["imagePullSecrets"] = [{"name": "s"}] * 2
    (error,) = graph_validation.on_update(old, new, KNOWN).errors
    assert error.path == f"{POD}.imagePullSecrets"


def test_ports_of_different_protocols_are_no_duplicates():
    ports = [PORT, {**PORT, "protocol": "UDP"}]
    assert messages(deployment(component(main={"ports": ports}))) == []


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from("12"))))
def test_last_of_several_variables_is_used(pairs):
    """As in Dynamo, and as containers do it."""
    env = [{"name": name, "value": value} for name, value in pairs]
    found = main_of(cliques(alpha(W=service(envs=env)))["w"])["env"]
    names = [each["name"] for each in found]
    assert len(names) == len(set(names))
    assert dict(pairs).items() <= {each["name"]: each.get("value") for each in found}.items()


SAME_CLAIM = {"name": "models", "persistentVolumeClaim": {"claimName": "cache"}}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (cached({"name": "cache", "mountPath": CACHE}), "cache"),
        (cached({"name": "cache", "mountPath": "/c", "subPath": "x"}, "/c"), "cache"),
        (cached({"name": "models", "mountPath": CACHE}, volumes=[SAME_CLAIM]), "models"),
    ],
)
def test_cache_that_container_mounts_is_mounted_once(body, name):
    assert messages(body) == []
    mounts = main_of(cliques(body)["worker"])["volumeMounts"]
    assert [each["name"] for each in mounts] == [name, "shared-memory"]
    volumes = cliques(body)["worker"]["spec"]["podSpec"]["volumes"]
    assert volumes[0] == {"name": name, "persistentVolumeClaim": {"claimName": "cache"}}


def test_v1alpha1_cache_that_container_mounts_is_mounted_once():
    mount = {"name": "cache", "mountPoint": CACHE, "useAsCompilationCache": True}
    body = alpha(
        W=service(
            main={"command": VLLM, "volumeMounts": [{"name": "cache", "mountPath": CACHE}]},
            volumeMounts=[mount],
        )
    )
    assert messages(body) == []
    assert [each["mountPath"] for each in main_of(cliques(body)["w"])["volumeMounts"]] == [CACHE, "/dev/shm"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            cached({"name": "models", "mountPath": CACHE}),
            f'spec.components[0].compilationCache: Invalid value: "{CACHE}": main mounts volume models there',
        ),
        (
            cached({"name": "cache", "mountPath": CACHE, "readOnly": True}),
            f'{POD}.containers[main].volumeMounts: Invalid value: "{CACHE}": the cache must be writable',
        ),
    ],
)
def test_other_volume_at_path_of_cache_is_rejected(body, message):
    (found,) = messages(body)
    assert found.startswith(message)
