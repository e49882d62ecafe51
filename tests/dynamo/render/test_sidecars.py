"""Sidecar containers, and the frontend that may be one of them."""

from __future__ import annotations

import pytest

from grove.dynamo.admission import graph_validation
from tests.dynamo.builders import KNOWN, alpha, cliques, component, deployment, service

BESIDE = {"name": "web", "image": "dynamo:1.4.1"}
DIRECT = ["-m", "dynamo.frontend", "--router-mode", "direct"]


def with_sidecar(main=None, annotations=None, name="web", **sidecar):
    body = component(main=main, frontendSidecar=name)
    body["podTemplate"]["spec"]["containers"].append({**BESIDE, **sidecar})
    return deployment(body, annotations=annotations)


def containers(body):
    return cliques(body)["worker"]["spec"]["podSpec"]["containers"]


def variables(container):
    return {each["name"]: each.get("value") for each in container["env"]}


def test_frontend_sidecar_gets_frontend_defaults():
    _, web = containers(with_sidecar(args=DIRECT, env=[{"name": "DYN_HTTP_PORT", "value": "80"}]))
    assert (web["name"], web["command"], web["args"]) == ("web", ["python3"], DIRECT)
    assert [port["name"] for port in web["ports"]] == ["http"]
    assert web["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    found = variables(web)
    assert list(found) == sorted(found)
    expected = {"DYN_COMPONENT": "frontend", "DYN_NAMESPACE_PREFIX": "ns-app", "DYN_HTTP_PORT": "80"}
    assert expected.items() <= found.items()
    assert "DYN_SYSTEM_PORT" not in found


def test_frontend_sidecar_shares_mounts_of_main():
    mounts = [{"name": "models", "mountPath": "/models"}, {"name": "logs", "mountPath": "/logs"}]
    own = {"name": "other", "mountPath": "/logs"}
    _, web = containers(with_sidecar({"volumeMounts": mounts}, volumeMounts=[own]))
    assert web["volumeMounts"] == [own, mounts[0]]


def test_container_discovery_mode_sets_container_name():
    mode = {"nvidia.com/dynamo-kube-discovery-mode": "container"}
    found = containers(with_sidecar(annotations=mode))
    assert [variables(each)["CONTAINER_NAME"] for each in found] == ["main", "web"]
    body = deployment(component())
    body["spec"]["components"][0]["podTemplate"]["metadata"] = {"annotations": mode}
    assert variables(containers(body)[0])["CONTAINER_NAME"] == "main"


def test_v1alpha1_sidecar_describes_its_container():
    sidecar = {
        "image": "web:1.4.1",
        "args": DIRECT,
        "envFromSecret": "token",
        "envs": [{"name": "A", "value": "1"}],
    }
    body = alpha(Worker=service(frontendSidecar=sidecar))
    assert graph_validation.on_create(body, KNOWN).errors == ()
    _, web = containers(body)
    assert (web["name"], web["image"], web["args"]) == ("sidecar-frontend", "web:1.4.1", DIRECT)
    assert web["envFrom"] == [{"secretRef": {"name": "token"}}]
    assert variables(web)["A"] == "1"


def test_other_sidecars_are_unchanged():
    body = deployment(component())
    body["spec"]["components"][0]["podTemplate"]["spec"]["containers"].append(BESIDE)
    assert containers(body)[1] == BESIDE


def twice(name):
    body = component()
    body["podTemplate"]["spec"]["containers"] += [{**BESIDE, "name": name}] * 2
    return deployment(body)


BOTH = service(frontendSidecar={"image": "x:1.4.1"})
BOTH["extraPodSpec"]["containers"] = [{"name": "sidecar-frontend", "image": "y"}]
MAIN_TOO = service()
MAIN_TOO["extraPodSpec"]["containers"] = [{"name": "main", "image": "y"}]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (with_sidecar(name="main"), 'spec.components[0].frontendSidecar: Invalid value: "main": must name'),
        (with_sidecar(name=""), 'spec.components[0].frontendSidecar: Invalid value: ""'),
        (
            alpha(W=service(frontendSidecar={})),
            "spec.services[W].extraPodSpec.containers[sidecar-frontend].image: Required",
        ),
        (alpha(W=BOTH), 'spec.services[W].extraPodSpec.containers: Duplicate value: "sidecar-frontend"'),
        (twice("web"), 'spec.components[0].podTemplate.spec.containers: Duplicate value: "web"'),
        (twice("main"), 'spec.components[0].podTemplate.spec.containers: Duplicate value: "main"'),
        (alpha(W=MAIN_TOO), 'spec.services[W].extraPodSpec.containers: Duplicate value: "main"'),
    ],
)
def test_missing_or_duplicate_sidecar_is_rejected(body, why):
    (error,) = graph_validation.on_create(body, KNOWN).errors
    assert str(error).startswith(why)


@pytest.mark.parametrize(("version", "errors"), [("1.4.1", 0), ("v1.4.1", 1), ("1.4", 1), ("1.4.1-rc1", 1)])
@pytest.mark.parametrize("is_alpha", [False, True])
def test_runtime_version_override_replaces_image_tag(version, errors, is_alpha):
    main, override = {"image": "dynamo:mine"}, {"runtimeVersionOverride": version}
    newer = deployment(component(main=main, **override))
    verdict = graph_validation.on_create(
        alpha(W=service(main=main, **override)) if is_alpha else newer, KNOWN
    )
    assert len(verdict.errors) == errors
    assert verdict.warnings == ()
