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
from tools.local_operator_rights import page

from grove.api.configuration import loading
from grove.api.configuration.default_scheduler import DefaultSchedulerConfig, PlacementMode
from grove.api.configuration.types import CertProvisionMode, OperatorConfiguration
from grove.dynamo.api import crd_definitions
from grove.local.cluster.operator_install import RIGHTS
from grove.schedulers.registry import backends
from tests.chart import CHART, NAMESPACE, Refused, hooked, one, program, render, run
from tests.shared import ROOT

pytestmark = pytest.mark.cluster  # Helm may have to be built

Values = dict[str, Any]

PERMANENT = Counter(
    {
        "ClusterRole": 2,
        "ClusterRoleBinding": 2,
        "ConfigMap": 1,
        "Deployment": 1,
        "MutatingWebhookConfiguration": 1,
        "NetworkPolicy": 1,
        "PodDisruptionBudget": 1,
        "Role": 3,
        "RoleBinding": 3,
        "Service": 1,
        "ServiceAccount": 1,
        "ValidatingWebhookConfiguration": 2,
    }
)
HOOK = {"ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Job": 1}
GRANT = {"Role": -1, "RoleBinding": -1}
WEBHOOKS = {"MutatingWebhookConfiguration": -1, "ValidatingWebhookConfiguration": -2}
DYNAMO = {"config.dynamo.enabled": True}
DYNAMO_MORE = {
    "ClusterRole": 2,
    "ClusterRoleBinding": 2,
    "CustomResourceDefinition": 3,
    "MutatingWebhookConfiguration": 1,
    "ValidatingWebhookConfiguration": 1,
}
PROFILES = "config.scheduler.profiles"
NOT_PLACING = {PROFILES: [{"name": "default-scheduler", "config": {"placement": "Off"}}]}
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
        ({"podDisruptionBudget.enabled": False}, {"PodDisruptionBudget": -1}),
        ({"networkPolicy.enabled": False}, {"NetworkPolicy": -1}),
        ({"metrics.serviceMonitor.enabled": True}, {"ServiceMonitor": 1}),
        ({"priorityClass.enabled": True}, {"PriorityClass": 1}),
        ({"webhooks.enabled": False}, WEBHOOKS),
        ({"config.authorizer.enabled": True}, {"ValidatingWebhookConfiguration": 1}),
        ({"config.leaderElection.enabled": False}, GRANT),
        (DYNAMO, DYNAMO_MORE),
        ({"config.dynamo.withoutGrove": True}, {}),
        ({"config.dynamo.imagePullSecretDiscovery": False}, {}),
        (MANUAL, GRANT),
        (
            {"rbac.create": False},
            {"ClusterRole": -2, "ClusterRoleBinding": -2, "Role": -3, "RoleBinding": -3},
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
        ({"serviceAccount.name": "me", **NOT_PLACING}, "ClusterRoleBinding", "subjects.0.name", "me"),
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
        ({"networkPolicy.egress": [{}]}, "NetworkPolicy", "spec.policyTypes", ["Ingress", "Egress"]),
        ({"config.server.metrics.port": 99}, "Service", "spec.ports.0.port", 99),
        ({"config.server.webhooks.port": 99}, "NetworkPolicy", "spec.ingress.0.ports.0.port", 99),
        ({"config.server.healthProbes.port": 99}, "Deployment", f"{OPERATOR}.ports.1.containerPort", 99),
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
            MANUAL,
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


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ({"config.topologyAwareScheduling.enabled": True}, "nodes"),
        ({"config.network.autoMNNVLEnabled": True}, "nodes"),
        ({"config.network.autoMNNVLEnabled": True}, "deviceclasses"),
        ({"config.scheduler.profiles": [{"name": "kai-scheduler"}]}, "topologies"),
        ({"config.scheduler.profiles": [{"name": "kai-scheduler"}]}, "clustertopologies/finalizers"),
        ({"config.scheduler.profiles": [{"name": "volcano"}]}, "queues"),
        (
            {
                "config.scheduler.profiles": [
                    {"name": "default-scheduler", "config": {"gangScheduling": True}}
                ]
            },
            "podgroups",
        ),
    ],
    ids=str,
)
def test_rbac_follows_enabled_features(values: Values, right: str) -> None:
    assert right not in resources({})
    assert right in resources(values)


def resources(given: Values) -> set[str]:
    role = one(render(given), "ClusterRole", "grove:system:grove-operator")
    return {resource for rule in role["rules"] for resource in rule["resources"]}


def placing(**config: object) -> Values:
    return {PROFILES: [{"name": "default-scheduler", "config": config}]}


PLACEMENT_ROLE = "grove:system:grove-operator-placement"
LEASE_ROLE = "grove:system:grove-operator-scheduler-lease"


@pytest.mark.parametrize("mode", PlacementMode)
def test_placement_grants_its_own_roles_unless_off(mode: PlacementMode) -> None:
    rendered = render(placing(placement=mode))
    roles = {each["metadata"]["name"] for each in rendered if each["kind"] in ("ClusterRole", "Role")}
    expected = set() if mode is PlacementMode.OFF else {PLACEMENT_ROLE, LEASE_ROLE}
    assert roles & {PLACEMENT_ROLE, LEASE_ROLE} == expected
    core = one(rendered, "ClusterRole", "grove:system:grove-operator")
    assert core == one(render(), "ClusterRole", "grove:system:grove-operator")


@pytest.mark.parametrize("values", [{}, {PROFILES: []}, placing()], ids=str)
def test_placement_of_chart_has_default_of_operator(values: Values) -> None:
    granted = any(each["metadata"]["name"] == PLACEMENT_ROLE for each in render(values))
    assert granted is DefaultSchedulerConfig().placement_settings.enabled


def test_placement_role_has_only_needed_permissions() -> None:
    role = one(render(placing(placement="All")), "ClusterRole", PLACEMENT_ROLE)
    rights = {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}
    assert rights.pop("pods/status") == ["patch"]
    assert sorted(rights) == [
        "deviceclasses",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "resourcequotas",
        "resourceslices",
        "storageclasses",
    ]
    assert all(verbs == ["get", "list", "watch"] for verbs in rights.values())


@pytest.mark.parametrize(
    ("lease", "namespace", "name"),
    [({}, "kube-system", "kube-scheduler"), ({"namespace": "a", "name": "b"}, "a", "b")],
)
def test_placement_reads_only_lease_of_scheduler(lease: Values, namespace: str, name: str) -> None:
    rendered = render(placing(placement="All", schedulerLease=lease))
    role = one(rendered, "Role", LEASE_ROLE)
    (rule,) = role["rules"]
    assert (rule["resources"], rule["resourceNames"]) == (["leases"], [name])
    assert rule["verbs"] == ["get", "list", "watch"]
    binding = one(rendered, "RoleBinding", LEASE_ROLE)
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == namespace


def test_off_in_a_values_file_disables_placement(tmp_path: Path) -> None:
    """Helm reads it as false."""
    file = tmp_path / "values.yaml"
    file.write_text("config: {scheduler: {profiles: [{name: default-scheduler, config: {placement: Off}}]}}")
    objects = list(yaml.safe_load_all(run("template", "grove", CHART, "--values", file)))
    assert PLACEMENT_ROLE not in {each["metadata"]["name"] for each in objects if each}
    written = yaml.safe_load(one([each for each in objects if each], "ConfigMap")["data"]["config.yaml"])
    assert written["scheduler"]["profiles"][0]["config"] == {"placement": False}
    assert not backends(loading.load(written).scheduler).of("").placement.enabled


def test_fabric_rbac_follows_configured_providers() -> None:
    assert "computedomains" in resources({})
    assert "computedomains" in resources({"config.network.autoMNNVLEnabled": True})
    assert "computedomains" not in resources({"config.fabrics": []})


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


def test_dynamo_role_has_only_needed_permissions() -> None:
    def resources(values: Values) -> set[str]:
        role = one(render(values), "ClusterRole", "grove:system:grove-operator-dynamo")
        return {resource for rule in role["rules"] for resource in rule["resources"]}

    core = one(render(DYNAMO), "ClusterRole", "grove:system:grove-operator")
    assert core == one(render(), "ClusterRole", "grove:system:grove-operator")
    assert "secrets" not in resources(DYNAMO)
    more = resources({**DYNAMO, "config.dynamo.withoutGrove": True}) - resources(DYNAMO)
    assert more == {"deployments", "leaderworkersets"}


@pytest.mark.parametrize(("mode", "resource"), [("affinity", "nodes"), ("kueue", "topologies")])
def test_dynamo_without_grove_may_read_topologies(mode: str, resource: str) -> None:
    name = "grove:system:grove-operator-dynamo"
    values = {**DYNAMO, "config.dynamo.withoutGrove": True}
    there = {**values, "config.dynamo.topologyAwareScheduling.mode": mode}
    plain, more = (one(render(each), "ClusterRole", name)["rules"] for each in (values, there))
    (added,) = (rule for rule in more if rule not in plain)
    assert added["resources"] == [resource]
    assert "list" in added["verbs"]


def test_secret_reader_role_can_be_disabled() -> None:
    def readers(values: Values) -> dict[str, list[str]]:
        """Roles that allow reading all Secrets, with their verbs."""
        return {
            each["metadata"]["name"]: rule["verbs"]
            for each in render(values)
            if each["kind"] == "ClusterRole"
            for rule in each["rules"]
            if "secrets" in rule["resources"] and rule["verbs"] != ["create"]
        }

    assert readers({}) == {}
    assert readers(DYNAMO) == {"grove:system:grove-operator-dynamo-pull-secrets": ["list", "watch"]}
    assert readers({**DYNAMO, "config.dynamo.imagePullSecretDiscovery": False}) == {}


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


def test_local_operator_has_the_rights_of_the_chart():
    """`grove up --operator` applies a file: `python -m tools.local_operator_rights` writes it."""
    assert RIGHTS.read_text() == page(program())
