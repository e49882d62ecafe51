"""The dashboard in the rendered chart: off by default, read-only, and apart from the operator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart import ACCOUNT, DASHBOARD, NAMESPACE, Refused, granted_roles, one, operator_rights, render
from tests.cluster.chart.test_rendering import DYNAMO, MANUAL, POD, Values, at, kinds

pytestmark = pytest.mark.cluster  # Helm may have to be built

ON: Values = {"dashboard.enabled": True}
TEAMS = ["team-a", "team-b"]
SOME: Values = {**ON, **MANUAL, "namespaces": TEAMS}
REVIEWS = {"tokenreviews", "subjectaccessreviews"}
OF_NODES = {"nodes", "persistentvolumes", "resourceslices", "deviceclasses", "storageclasses"}
PEER = {"podSelector": {"matchLabels": {"app": "gateway"}}}
CONTAINER = f"{POD}.containers.0"
LEASE = f"{CONTAINER}.args.5"


def roles(values: Values) -> list[dict[str, Any]]:
    """The roles that are granted to the dashboard."""
    found = granted_roles(operator_rights(values))
    return [role for subject, role in found if subject["name"] == DASHBOARD]


def resources(found: list[dict[str, Any]]) -> set[str]:
    return {resource for role in found for rule in role["rules"] for resource in rule["resources"]}


def test_dashboard_is_off_by_default() -> None:
    added = kinds(render(ON))
    added.subtract(kinds(render()))
    assert {kind: count for kind, count in added.items() if count} == {
        "ClusterRole": 1,
        "ClusterRoleBinding": 1,
        "Deployment": 1,
        "NetworkPolicy": 1,
        "Role": 1,
        "RoleBinding": 1,
        "Service": 1,
        "ServiceAccount": 1,
    }


@pytest.mark.parametrize("values", [ON, SOME, {**ON, **DYNAMO}, {**SOME, **DYNAMO}], ids=str)
def test_dashboard_may_only_read_and_review_users(values: Values) -> None:
    for rule in (rule for role in roles(values) for rule in role["rules"]):
        reviews = set(rule["resources"]) <= REVIEWS
        assert rule["verbs"] == (["create"] if reviews else ["get", "list", "watch"])
        assert not any("/" in resource or resource == "*" for resource in rule["resources"])
    seen = resources(roles(values))
    assert seen >= REVIEWS
    assert not seen & {"secrets", "configmaps", "serviceaccounts", "roles"}


def test_dashboard_of_some_namespaces_has_no_right_to_nodes() -> None:
    whole, part = roles(ON), roles(SOME)
    assert resources(whole) - resources(part) == OF_NODES
    assert {role["metadata"].get("namespace") for role in part} == {*TEAMS, NAMESPACE, None}
    (of_cluster,) = (role for role in part if role["kind"] == "ClusterRole")
    assert "pods" not in resources([of_cluster])


@pytest.mark.parametrize("values", [ON, SOME], ids=str)
@pytest.mark.parametrize("place", ["", "elsewhere"])
def test_dashboard_reads_one_lease_in_its_namespace(values: Values, place: str) -> None:
    found = roles({**values, "config.leaderElection.resourceNamespace": place})
    (role,) = (role for role in found if "leases" in resources([role]))
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", place or NAMESPACE)
    (rule,) = role["rules"]
    assert rule["resourceNames"] == ["grove-operator-leader-election"]


def test_operator_and_webhooks_are_the_same_with_dashboard() -> None:
    before, after = render(), render(ON)
    assert [each for each in after if DASHBOARD not in each["metadata"]["name"]] == before
    labels = at(one(after, "Deployment", DASHBOARD), "spec.template.metadata.labels").items()
    selectors = [
        at(one(after, "Service", ACCOUNT), "spec.selector"),
        at(one(after, "Deployment", ACCOUNT), "spec.selector.matchLabels"),
        at(one(after, "NetworkPolicy", ACCOUNT), "spec.podSelector.matchLabels"),
        at(one(after, "PodDisruptionBudget", ACCOUNT), "spec.selector.matchLabels"),
    ]
    assert not any(selector.items() <= labels for selector in selectors)
    for kind, path in (("Service", "spec.selector"), ("NetworkPolicy", "spec.podSelector.matchLabels")):
        assert at(one(after, kind, DASHBOARD), path).items() <= labels


def test_pod_has_security_context_and_probes_of_its_port() -> None:
    objects = render(ON)
    pod, operator = (at(one(objects, "Deployment", name), POD) for name in (DASHBOARD, ACCOUNT))
    assert pod["securityContext"] == operator["securityContext"]
    container = pod["containers"][0]
    assert container["securityContext"] == operator["containers"][0]["securityContext"]
    assert pod["serviceAccountName"] == DASHBOARD
    paths = {key: container[f"{key}Probe"]["httpGet"] for key in ("startup", "liveness", "readiness")}
    assert {key: probe["path"] for key, probe in paths.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert all((probe["scheme"], probe["port"]) == ("HTTPS", "https") for probe in paths.values())
    assert {"dashboard", "--sign-in", "--no-browser", "--bind=0.0.0.0", "--port=8443"} <= {*container["args"]}


@pytest.mark.parametrize(
    ("values", "kind", "path", "expected"),
    [
        (
            {"dashboard.resources.limits.memory": "2Gi"},
            "Deployment",
            f"{CONTAINER}.resources.limits.memory",
            "2Gi",
        ),
        ({"nodeSelector.a": "b"}, "Deployment", f"{POD}.nodeSelector", {"a": "b"}),
        ({"tolerations": [{"key": "a"}]}, "Deployment", f"{POD}.tolerations.0.key", "a"),
        ({"affinity": {"podAffinity": {}}}, "Deployment", f"{POD}.affinity", {"podAffinity": {}}),
        ({"podLabels.a": "b"}, "Deployment", "spec.template.metadata.labels.a", "b"),
        ({"podAnnotations.a": "b"}, "Deployment", "spec.template.metadata.annotations.a", "b"),
        ({"commonLabels.a": "b"}, "Service", "metadata.labels.a", "b"),
        ({"image.tag": "v2"}, "Deployment", f"{CONTAINER}.image", "grove-operator:v2"),
        ({"dashboard.service.type": "LoadBalancer"}, "Service", "spec.type", "LoadBalancer"),
        ({"dashboard.service.annotations.a": "b"}, "Service", "metadata.annotations.a", "b"),
        ({"dashboard.serviceAccount.annotations.a": "b"}, "ServiceAccount", "metadata.annotations.a", "b"),
        ({"networkPolicy.dashboardFrom": [PEER]}, "NetworkPolicy", "spec.ingress.0.from", [PEER]),
        ({"networkPolicy.egress": [{}]}, "NetworkPolicy", "spec.policyTypes", ["Ingress", "Egress"]),
        ({"dashboard.tls.secretName": "s"}, "Deployment", f"{POD}.volumes.0.secret.secretName", "s"),
        ({"config.leaderElection.resourceName": "l"}, "Deployment", LEASE, f"--lease={NAMESPACE}/l"),
        (
            {"config.leaderElection.resourceNamespace": "n"},
            "Deployment",
            LEASE,
            "--lease=n/grove-operator-leader-election",
        ),
    ],
    ids=str,
)
def test_value_of_dashboard_is_rendered(values: Values, kind: str, path: str, expected: object) -> None:
    found = at(one(render({**ON, **values}), kind, DASHBOARD), path)
    assert found == expected


def test_certificate_is_mounted_only_if_given() -> None:
    own, given = (
        at(one(render({**ON, **values}), "Deployment", DASHBOARD), POD)
        for values in ({}, {"dashboard.tls.secretName": "s"})
    )
    assert [each["name"] for each in own["volumes"]] == ["tmp"]
    mount = given["containers"][0]["volumeMounts"][0]
    assert f"--tls-cert-dir={mount['mountPath']}" in given["containers"][0]["args"]
    assert not any("tls" in argument for argument in own["containers"][0]["args"])


def test_ingress_is_rendered_with_host_and_certificate() -> None:
    tls = [{"hosts": ["grove.example.com"], "secretName": "s"}]
    values = {
        **ON,
        "dashboard.ingress": {
            "enabled": True,
            "className": "nginx",
            "host": "grove.example.com",
            "tls": tls,
            "annotations": {"a": "b"},
        },
    }
    ingress = one(render(values), "Ingress")
    assert ingress["metadata"]["namespace"] == NAMESPACE
    assert ingress["metadata"]["annotations"] == {"a": "b"}
    assert (ingress["spec"]["ingressClassName"], ingress["spec"]["tls"]) == ("nginx", tls)
    backend = at(ingress, "spec.rules.0.http.paths.0.backend.service")
    assert backend == {"name": DASHBOARD, "port": {"name": "https"}}
    with pytest.raises(Refused, match=r"dashboard\.ingress\.host"):
        render({**ON, "dashboard.ingress.enabled": True})


@pytest.mark.parametrize("values", [{"dashboard.enable": True}, {"dashboard.tls.secret": "s"}], ids=str)
def test_misspelled_value_of_dashboard_is_rejected(values: Values) -> None:
    with pytest.raises(Refused):
        render(values)
