"""The rendered chart: with defaults, with every value, as a subchart, and rejected values."""

from __future__ import annotations

import base64
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from grove.api.configuration import loading
from grove.api.configuration.types import CertProvisionMode, OperatorConfiguration
from grove.dynamo.api import crd_definitions
from tests.chart import ACCOUNT, ADMISSION, CHART, NAMESPACE, TOGETHER, Refused, hooked, one, render, run
from tests.shared import ROOT

pytestmark = pytest.mark.cluster  # Helm may have to be built
Values = dict[str, Any]
PERMANENT = Counter(
    {
        "ClusterRole": 5,
        "ClusterRoleBinding": 3,
        "ConfigMap": 1,
        "Deployment": 2,
        "MutatingWebhookConfiguration": 1,
        "NetworkPolicy": 1,
        "PodDisruptionBudget": 2,
        "Role": 3,
        "RoleBinding": 3,
        "Service": 2,
        "ServiceAccount": 2,
        "ValidatingWebhookConfiguration": 2,
    }
)
HOOK = {"ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Job": 1}
GRANT = {"Role": -1, "RoleBinding": -1}
WEBHOOKS = {"MutatingWebhookConfiguration": -1, "ValidatingWebhookConfiguration": -2}
DYNAMO = {"config.dynamo.enabled": True}
DYNAMO_MORE = {
    "ClusterRole": 1,
    "ClusterRoleBinding": 1,
    "CustomResourceDefinition": 3,
    "MutatingWebhookConfiguration": 1,
    "ValidatingWebhookConfiguration": 1,
}
PROFILES = "config.scheduler.profiles"
NOT_PLACING = {PROFILES: [{"name": "default-scheduler", "config": {"placement": "Off"}}]}
APART = ("ClusterRole", "ClusterRoleBinding", "Deployment", "PodDisruptionBudget", "Service")
MANUAL = {"config.server.webhooks.certProvisionMode": "manual"}


def kinds(objects: list[dict[str, Any]], *, hooks: bool = False) -> Counter[str]:
    return Counter(each["kind"] for each in objects if bool(hooked(each)) == hooks)


def test_default_values_render_expected_objects() -> None:
    objects = render()
    assert kinds(objects) == PERMANENT
    assert kinds(objects, hooks=True) == {kind: 2 * count for kind, count in HOOK.items()}
    assert run("lint", "--strict", CHART)


@pytest.mark.parametrize(
    ("values", "difference"),
    [
        ({"podDisruptionBudget.enabled": False}, {"PodDisruptionBudget": -2}),
        (TOGETHER, dict.fromkeys((*APART, "ServiceAccount"), -1)),
        ({"config.server.metrics.secure": True}, {"ClusterRole": 3, "ClusterRoleBinding": 2}),
        ({"networkPolicy.enabled": False}, {"NetworkPolicy": -1}),
        ({"metrics.serviceMonitor.enabled": True}, {"ServiceMonitor": 1}),
        ({"priorityClass.enabled": True}, {"PriorityClass": 1}),
        ({"webhooks.enabled": False}, WEBHOOKS),
        ({"config.authorizer.enabled": True}, {"ValidatingWebhookConfiguration": 1}),
        ({"config.leaderElection.enabled": False}, GRANT),
        (DYNAMO, DYNAMO_MORE),
        ({"config.dynamo.withoutGrove": True}, {}),
        ({"config.dynamo.imagePullSecretDiscovery": True}, {}),
        ({"rbac.aggregate": False}, {"ClusterRole": -2}),
        (MANUAL, GRANT),
        (
            {"rbac.create": False},
            {"ClusterRole": -5, "ClusterRoleBinding": -3, "Role": -3, "RoleBinding": -3},
        ),
    ],
    ids=str,
)
def test_switch_adds_or_removes_objects(values: Values, difference: dict[str, int]) -> None:
    found = kinds(render(values))
    found.subtract(PERMANENT)
    assert {kind: count for kind, count in found.items() if count} == difference


@pytest.mark.parametrize("switch", ["crdInstaller.enabled", "uninstaller.enabled"])
def test_each_hook_can_be_disabled(switch: str) -> None:
    assert kinds(render({switch: False}), hooks=True) == HOOK


@pytest.mark.parametrize(
    ("fabrics", "argument"),
    [
        (["nvidia"], "nvidia"),
        ([], "nvidia"),
        (None, "nvidia"),
        (["example", "nvidia"], "example,nvidia"),
        (["example"], "example,nvidia"),
    ],
)
def test_uninstaller_detaches_domains_of_every_vendor(fabrics: list[str] | None, argument: str) -> None:
    """Those of NVIDIA also if an earlier release has left some."""
    found = [
        each for each in render({"config.fabrics": fabrics}) if "grove-detach" in each["metadata"]["name"]
    ]
    (job,) = (each for each in found if each["kind"] == "Job")
    assert at(job, f"{POD}.containers.0.args") == ["detach", f"--fabrics={argument}"]
    (role,) = (each for each in found if each["kind"] == "ClusterRole")
    rules = [rule for rule in role["rules"] if rule["resources"] == ["computedomains"]]
    assert [rule["verbs"] for rule in rules] == [["list", "patch"]]


def test_pods_of_jobs_have_their_own_annotations() -> None:
    for job in (each for each in render({"jobs.podAnnotations.a": "b"}) if each["kind"] == "Job"):
        assert job["spec"]["template"]["metadata"]["annotations"] == {"a": "b"}


def at(found: Any, path: str) -> Any:
    """The value at a path such as `a.b.0.c` in nested mappings and lists."""
    for step in path.split("."):
        found = found[int(step)] if step.isdigit() else found[step]
    return found


POD = "spec.template.spec"
OPERATOR = f"{POD}.containers.0"
PEER = {"podSelector": {"matchLabels": {"app": "prometheus"}}}


@pytest.mark.parametrize(
    ("values", "kind", "path", "expected"),
    [
        ({"replicaCount": 3}, "Deployment", "spec.replicas", 3),
        ({"image.repository": "a/b"}, "Deployment", f"{OPERATOR}.image", "a/b:0.1.0"),
        ({"image.tag": "v2"}, "Deployment", f"{OPERATOR}.image", "grove-operator:v2"),
        (
            {"image.digest": "sha256:" + "0" * 64},
            "Deployment",
            f"{OPERATOR}.image",
            "grove-operator@sha256:" + "0" * 64,
        ),
        ({"initContainer.image.tag": "v2"}, "Deployment", f"{OPERATOR}.env.1.value", "grove-initc:v2"),
        ({"image.pullPolicy": "Always"}, "Deployment", f"{OPERATOR}.imagePullPolicy", "Always"),
        ({"imagePullSecrets": [{"name": "s"}]}, "Deployment", f"{POD}.imagePullSecrets.0.name", "s"),
        ({"commonLabels.a": "b"}, "Service", "metadata.labels.a", "b"),
        ({"commonLabels.a": "b"}, "Deployment", "spec.template.metadata.labels.a", "b"),
        ({"commonAnnotations.a": "b"}, "ConfigMap", "metadata.annotations.a", "b"),
        ({"serviceAccount.annotations.a": "b"}, "ServiceAccount", "metadata.annotations.a", "b"),
        ({"serviceAccount.name": "me"}, "Deployment", f"{POD}.serviceAccountName", "me"),
        (
            {"serviceAccount.name": "me", **NOT_PLACING, **TOGETHER},
            "ClusterRoleBinding",
            "subjects.0.name",
            "me",
        ),
        ({"podLabels.a": "b"}, "Deployment", "spec.template.metadata.labels.a", "b"),
        ({"podAnnotations.a": "b"}, "Deployment", "spec.template.metadata.annotations.a", "b"),
        ({"podSecurityContext.runAsUser": 7}, "Deployment", f"{POD}.securityContext.runAsUser", 7),
        ({"resources.limits.memory": "2Gi"}, "Deployment", f"{OPERATOR}.resources.limits.memory", "2Gi"),
        ({"nodeSelector.a": "b"}, "Deployment", f"{POD}.nodeSelector.a", "b"),
        ({"tolerations": [{"key": "a"}]}, "Deployment", f"{POD}.tolerations.0.key", "a"),
        ({"affinity": {"podAffinity": {}}}, "Deployment", f"{POD}.affinity", {"podAffinity": {}}),
        ({"topologySpreadConstraints": []}, "Deployment", f"{POD}.topologySpreadConstraints", []),
        ({"priorityClassName": "high"}, "Deployment", f"{POD}.priorityClassName", "high"),
        (
            {"priorityClass.enabled": True},
            "Deployment",
            f"{POD}.priorityClassName",
            "grove-operator-priority",
        ),
        ({"priorityClass.enabled": True}, "PriorityClass", "value", 999999550),
        ({"podDisruptionBudget.maxUnavailable": "50%"}, "PodDisruptionBudget", "spec.maxUnavailable", "50%"),
        ({"deployment.annotations.a": "b"}, "Deployment", "metadata.annotations.a", "b"),
        ({"deployment.env": [{"name": "A", "value": "b"}]}, "Deployment", f"{OPERATOR}.env.2.value", "b"),
        ({"service.clusterIP": "10.0.0.7"}, "Service", "spec.clusterIP", "10.0.0.7"),
        ({"service.type": "NodePort"}, "Service", "spec.type", "NodePort"),
        ({"service.annotations.a": "b"}, "Service", "metadata.annotations.a", "b"),
        ({"networkPolicy.metricsFrom": [PEER]}, "NetworkPolicy", "spec.ingress.1.from", [PEER]),
        ({"networkPolicy.webhooksFrom": [PEER]}, "NetworkPolicy", "spec.ingress.2.from", [PEER]),
        ({"networkPolicy.egress": [{}]}, "NetworkPolicy", "spec.policyTypes", ["Ingress", "Egress"]),
        ({"config.server.metrics.port": 99}, "Service", "spec.ports.0.port", 99),
        ({"config.server.webhooks.port": 99}, "NetworkPolicy", "spec.ingress.0.ports.0.port", 99),
        ({"config.server.healthProbes.port": 99}, "Deployment", f"{OPERATOR}.ports.0.containerPort", 99),
        (
            {"metrics.serviceMonitor.enabled": True, "metrics.serviceMonitor.labels.a": "b"},
            "ServiceMonitor",
            "metadata.labels.a",
            "b",
        ),
        (
            {**MANUAL, "webhooks.caBundle": "YQ=="},
            "MutatingWebhookConfiguration",
            "webhooks.0.clientConfig.caBundle",
            "YQ==",
        ),
        (
            {"webhooks.annotations.a": "b"},
            "MutatingWebhookConfiguration",
            "metadata.annotations.a",
            "b",
        ),
        (
            {**MANUAL, **TOGETHER},
            "Deployment",
            f"{POD}.volumes.1",
            {"name": "certificates", "secret": {"secretName": "grove-webhook-server-cert"}},
        ),
    ],
    ids=str,
)
def test_value_is_rendered(values: Values, kind: str, path: str, expected: object) -> None:
    permanent = [each for each in render(values) if not hooked(each)]
    assert at(one(permanent, kind), path) == expected


def placing(**config: object) -> Values:
    return {PROFILES: [{"name": "default-scheduler", "config": config}]}


def test_webhooks_have_pods_and_account_of_their_own() -> None:
    objects = render({"admission.replicaCount": 3, "admission.resources.limits.memory": "1Gi", **MANUAL})
    operator, webhooks = (one(objects, "Deployment", name)["spec"] for name in (ACCOUNT, ADMISSION))
    assert webhooks["replicas"] == 3
    ports = [
        [port["name"] for port in spec["template"]["spec"]["containers"][0]["ports"]]
        for spec in (operator, webhooks)
    ]
    assert ports == [["health", "metrics"], ["webhooks", "health", "metrics"]]
    pod, own = webhooks["template"]["spec"], operator["template"]["spec"]
    assert (pod["serviceAccountName"], own["serviceAccountName"]) == (ADMISSION, ACCOUNT)
    assert pod["containers"][0]["args"] == ["admission", "--config=/etc/grove-operator/config/config.yaml"]
    assert own["containers"][0]["args"][-1] == f"--admission=https://{ADMISSION}.{NAMESPACE}.svc:9443"
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["securityContext"] == own["securityContext"]
    mounted = [[each["name"] for each in spec["volumes"]] for spec in (own, pod)]
    assert mounted == [["config", "tmp"], ["config", "certificates", "tmp"]]
    account = pod["containers"][0]["env"][0]
    assert account == {"name": "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "value": ACCOUNT}


def test_service_of_reviews_selects_old_and_new_pods() -> None:
    """Pods of an operator that served the webhooks, and those of their own: by the name of the port."""
    before, after = render(TOGETHER), render()
    service = one(after, "Service", ACCOUNT)
    assert service == one(before, "Service", ACCOUNT)
    selector = service["spec"]["selector"].items()
    pods = (one(before, "Deployment"), one(after, "Deployment", ADMISSION))
    for each in pods:
        assert selector <= each["spec"]["template"]["metadata"]["labels"].items()
    assert {"name": "webhooks", "port": 9443, "targetPort": "webhooks"} in service["spec"]["ports"]
    webhooks = [each for each in after if each["kind"].endswith("WebhookConfiguration")]
    assert webhooks == [each for each in before if each["kind"].endswith("WebhookConfiguration")]


def test_each_pod_has_one_disruption_budget() -> None:
    """A pod with two cannot be evicted."""
    objects = render()
    own = one(objects, "PodDisruptionBudget")["spec"]["selector"]
    assert own["matchExpressions"] == [{"key": "app.kubernetes.io/component", "operator": "DoesNotExist"}]
    labels = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert "app.kubernetes.io/component" not in labels


def test_secure_metrics_are_scraped_by_https_with_token() -> None:
    values: Values = {"metrics.serviceMonitor.enabled": True}
    assert "scheme" not in at(one(render(values), "ServiceMonitor"), "spec.endpoints.0")
    monitor = one(render({**values, "config.server.metrics.secure": True}), "ServiceMonitor")
    secure = at(monitor, "spec.endpoints.0")
    assert (secure["scheme"], "bearerTokenFile" in secure) == ("https", True)


def test_webhook_peers_are_limited_only_if_given() -> None:
    def ingress(values: Values) -> list[tuple[list[int], bool]]:
        rules = one(render(values), "NetworkPolicy")["spec"]["ingress"]
        return [([port["port"] for port in rule["ports"]], "from" in rule) for rule in rules]

    assert ingress({}) == [([9443, 9444], False), ([9445], False)]
    limited = ingress({"networkPolicy.webhooksFrom": [PEER]})
    assert limited == [([9444], False), ([9445], False), ([9443], True)]


def configuration(values: Values | None = None) -> OperatorConfiguration:
    """The configuration in the ConfigMap, as the operator reads it."""
    return loading.load(yaml.safe_load(one(render(values), "ConfigMap")["data"]["config.yaml"]))


def test_rendered_configuration_is_valid() -> None:
    found = configuration()
    assert (found.server.webhooks.port, found.server.health_probes.port, found.server.metrics.port) == (
        9443,
        9444,
        9445,
    )
    assert found.leader_election.enabled
    assert found.leader_election.resource_namespace == NAMESPACE
    plain = OperatorConfiguration()
    assert found.network == plain.network
    assert found.topology_aware_scheduling == plain.topology_aware_scheduling
    assert found.dynamo == plain.dynamo
    assert found.fabrics == ("nvidia",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("network.autoMNNVLEnabled", True),
        ("network.protectComputeDomains", True),
        ("topologyAwareScheduling.enabled", True),
        ("dynamo.enabled", True),
        ("dynamo.topologyAwareScheduling.allowedDomains", ["rack"]),
        ("dynamo.topologyAwareScheduling.domainToLabelMapping", {"rack": "example.com/rack"}),
        ("dynamo.topologyAwareScheduling.defaultTopologyName", "mine"),
        ("fabrics", []),
        ("logLevel", "debug"),
        ("server.webhooks.certProvisionMode", "manual"),
        ("leaderElection.resourceNamespace", "elsewhere"),
        ("runtimeClientConnection.qps", 7.5),
        ("scheduler.defaultProfileName", "default-scheduler"),
    ],
)
def test_every_configuration_key_can_be_set(key: str, value: object) -> None:
    found = msgspec.json.decode(msgspec.json.encode(configuration({f"config.{key}": value})))
    assert at(found, key) == value


def test_changed_configuration_rolls_the_operator() -> None:
    def names(values: Values) -> tuple[str, str]:
        objects = render(values)
        volumes = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
        return one(objects, "ConfigMap")["metadata"]["name"], volumes[0]["configMap"]["name"]

    first, second = names({}), names({"config.network.autoMNNVLEnabled": True})
    assert first[0] == first[1] != second[0] == second[1]
    assert one(render(), "ConfigMap")["immutable"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"config.network.autoMnnvlEnabled": True}, "'/config/network': additional properties"),
        ({"replicas": 3}, "additional properties 'replicas'"),
        ({"replicaCount": "two"}, "'/replicaCount': got string, want integer"),
        ({"config.server.webhooks.port": 0}, "'/config/server/webhooks/port'"),
        (
            {"config.server.webhooks.certProvisionMode": "magic"},
            "'/config/server/webhooks/certProvisionMode'",
        ),
        ({"config.logLevel": "loud"}, "'/config/logLevel'"),
        ({"image.digest": "latest"}, "'/image/digest'"),
        ({"service.name": "other"}, "'/service/name'"),
        ({"config.scheduler.profiles": [{}]}, "'/config/scheduler/profiles/0'"),
        (placing(placment="All"), "'/config/scheduler/profiles/0/config': additional properties 'placment'"),
        (placing(placement="Some"), "'/config/scheduler/profiles/0/config/placement'"),
        (placing(schedulerLease={"name": ""}), "'/config/scheduler/profiles/0/config/schedulerLease/name'"),
    ],
    ids=str,
)
def test_misspelled_value_is_rejected(values: Values, words: str) -> None:
    with pytest.raises(Refused) as refusal:
        render(values)
    assert words in str(refusal.value)


def test_certificate_modes_match_the_operator() -> None:
    for mode in CertProvisionMode:
        assert configuration({"config.server.webhooks.certProvisionMode": mode}).server.webhooks


def test_chart_as_subchart_with_alias_and_condition(tmp_path: Path) -> None:
    """As in the platform chart of Dynamo."""
    parent = {
        "apiVersion": "v2",
        "name": "platform",
        "version": "1.0.0",
        "dependencies": [
            {
                "name": "grove-charts",
                "alias": "grove",
                "version": "0.1.0",
                "repository": f"file://{CHART}",
                "condition": "grove.enabled",
            }
        ],
    }
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(parent))
    (tmp_path / "values.yaml").write_text("global: {registry: x}\ngrove: {enabled: true, replicaCount: 3}\n")
    run("dependency", "update", "--skip-refresh", tmp_path)
    objects = render({"grove.config.network.autoMNNVLEnabled": True}, chart=tmp_path)
    assert kinds(objects) == PERMANENT
    assert one(objects, "Deployment")["spec"]["replicas"] == 3
    assert "autoMNNVLEnabled: true" in one(objects, "ConfigMap")["data"]["config.yaml"]
    assert render({"grove.enabled": False}, chart=tmp_path) == []


def test_chart_version_is_project_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["name"], chart["version"], chart["appVersion"]) == ("grove-charts", version, version)


def test_dynamo_defaults_to_seven_domains() -> None:
    allowed = configuration().dynamo.topology_aware_scheduling.allowed_domains
    assert allowed == ("region", "zone", "datacenter", "block", "rack", "host", "numa")


def test_dynamo_crds_are_installed_and_kept() -> None:
    found = {each["metadata"]["name"]: each for each in render(DYNAMO) if each["kind"].startswith("CustomR")}
    for definition in crd_definitions.all_definitions():
        shown = found[definition["metadata"]["name"]]
        assert shown["spec"] == definition["spec"]
        assert shown["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("authorizer", [False, True])
@pytest.mark.parametrize("trust", [b"", b"a certificate"])
def test_webhook_paths_match_the_operator(authorizer: bool, trust: bytes, dynamo: bool) -> None:
    registrations = pytest.importorskip("grove.webhooks.registrations")
    values: Values = {"config.authorizer.enabled": authorizer, "config.dynamo.enabled": dynamo}
    if trust:
        values["webhooks.caBundle"] = base64.b64encode(trust).decode()
    rendered = [each for each in render(values) if each["kind"].endswith("WebhookConfiguration")]
    for each in rendered:
        each["metadata"] = {"name": each["metadata"]["name"]}
    exempt = configuration(values).authorizer.exempt_service_account_user_names
    expected = registrations.configurations(
        registrations.ServiceAddress(NAMESPACE),
        operator=registrations.account(NAMESPACE),
        authorizer=authorizer,
        dynamo=dynamo,
        exempt=exempt,
        ca_bundle=trust,
    )

    def by_name(found: list[dict[str, Any]]) -> dict[str, Any]:
        return {each["metadata"]["name"]: each for each in found}

    assert by_name(rendered) == by_name(expected)
