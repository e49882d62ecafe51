"""The roles of the rendered chart: each feature has its rights, and no others."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from tools.local_operator_rights import page

from grove.api.configuration import loading
from grove.api.configuration.default_scheduler import DefaultSchedulerConfig, PlacementMode
from grove.local.cluster.operator_install import RIGHTS
from grove.schedulers.registry import backends
from tests.chart import (
    ACCOUNT,
    ADMISSION,
    APART,
    CHART,
    DASHBOARD,
    TOGETHER,
    Refused,
    aggregated_to,
    granted_roles,
    one,
    operator_rights,
    program,
    render,
    run,
)
from tests.cluster.chart.rights_page import (
    FEATURE_TABLES,
    Right,
    documented,
    documented_of_feature,
    feature_names,
)
from tests.cluster.chart.test_rendering import (
    DYNAMO,
    NOT_PLACING,
    PROFILES,
    Values,
    configuration,
    placing,
)

pytestmark = pytest.mark.cluster  # Helm may have to be built


def test_uninstaller_may_get_rights_to_domains_of_others() -> None:
    name, rule = (
        "grove:system:grove-detach",
        {"apiGroups": ["example.com"], "resources": ["islands"], "verbs": ["list", "patch"]},
    )
    plain, more = (
        one(render({"uninstaller.additionalRules": rules}), "ClusterRole", name)["rules"]
        for rules in ([], [rule])
    )
    assert more == [*plain, rule]
    with pytest.raises(Refused, match="verbs"):
        render({"uninstaller.additionalRules": [{"apiGroups": ["a"], "resources": ["b"]}]})


UNPLACED_PROFILE = NOT_PLACING[PROFILES][0]
FEWEST: Values = {
    **NOT_PLACING,
    "config.startOrder.enabled": False,
    "config.fabrics": [],
    "dashboard.enabled": True,
}
"""Values that switch every feature of the operator off; the dashboard has an account of its own."""
TOPOLOGY: Values = {"config.topologyAwareScheduling.enabled": True}
KAI: Values = {PROFILES: [UNPLACED_PROFILE, {"name": "kai-scheduler"}]}
WITHOUT_GROVE: Values = {**DYNAMO, "config.dynamo.withoutGrove": True}
NVIDIA: Values = {"config.fabrics": ["nvidia"]}
AUTHORIZER = "`config.authorizer.enabled`"
KAI_TOPOLOGIES = "profile `kai-scheduler` and topologies"
MODE = "config.dynamo.topologyAwareScheduling.mode"
FEATURES: dict[str, tuple[Values, Values]] = {
    "`config.startOrder.enabled`": ({}, {"config.startOrder.enabled": True}),
    "`config.topologyAwareScheduling.enabled`": ({}, TOPOLOGY),
    "`nvidia` in `config.fabrics`": ({"config.fabrics": ["example.com"]}, NVIDIA),
    "any vendor in `config.fabrics`": ({}, {"config.fabrics": ["example.com"]}),
    "`config.network.autoMNNVLEnabled`": (NVIDIA, {**NVIDIA, "config.network.autoMNNVLEnabled": True}),
    "`config.server.metrics.secure`": ({}, {"config.server.metrics.secure": True}),
    AUTHORIZER: ({}, {"config.authorizer.enabled": True}),
    "profile `kai-scheduler`": ({}, KAI),
    "`gangScheduling` of `default-scheduler`": ({}, placing(placement="Off", gangScheduling=True)),
    "profile `volcano`": ({}, {PROFILES: [UNPLACED_PROFILE, {"name": "volcano"}]}),
    "`config.dynamo.enabled`": ({}, DYNAMO),
    "`config.dynamo.imagePullSecretDiscovery`": (
        DYNAMO,
        {**DYNAMO, "config.dynamo.imagePullSecretDiscovery": True},
    ),
    "`config.dynamo.withoutGrove`": (DYNAMO, WITHOUT_GROVE),
    "`mode: affinity` without Grove": (WITHOUT_GROVE, {**WITHOUT_GROVE, MODE: "affinity"}),
    "`mode: kueue` without Grove": (WITHOUT_GROVE, {**WITHOUT_GROVE, MODE: "kueue"}),
}
"""By the words of docs/rights.md, values without a feature and with it."""


def rights(values: Values, account: str = ACCOUNT) -> set[Right]:
    """The rights of an account in every namespace, as the chart grants them."""
    return {
        right
        for subject, role in granted_roles(operator_rights(APART | FEWEST | values))
        if subject["name"] == account and role["kind"] == "ClusterRole"
        for rule in role["rules"]
        for right in itertools.product(
            rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""], rule["verbs"]
        )
    }


def test_chart_without_features_grants_only_basic_rights() -> None:
    assert rights({}) == documented("Everywhere")
    assert rights({}, ADMISSION) == documented("The webhooks")
    assert rights({}, DASHBOARD) == documented("The dashboard")


@pytest.mark.parametrize("account", FEATURE_TABLES)
@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_adds_only_its_documented_rights(feature: str, account: str) -> None:
    without, with_it = (rights(each, account) for each in FEATURES[feature])
    assert with_it - without == documented_of_feature(feature, account)
    assert without <= with_it


@pytest.mark.parametrize("feature", FEATURES)
def test_operator_that_serves_webhooks_has_rights_of_both(feature: str) -> None:
    _, values = FEATURES[feature]
    assert rights(values | TOGETHER) == rights(values) | rights(values, ADMISSION)


def test_provided_certificate_needs_no_right_to_patch() -> None:
    manual = {"config.server.webhooks.certProvisionMode": "manual", **DYNAMO}
    for account, values in ((ADMISSION, APART), (ACCOUNT, TOGETHER)):
        automatic, provided = (rights(each | values, account) for each in (DYNAMO, manual))
        assert provided < automatic
        removed = {(resource.partition("webhook")[2], verb) for _, resource, _, verb in automatic - provided}
        assert removed == {("configurations", "patch")}


def test_topologies_of_kai_need_both_features() -> None:
    assert rights(TOPOLOGY | KAI) - rights(TOPOLOGY) - rights(KAI) == documented_of_feature(KAI_TOPOLOGIES)


def test_every_documented_feature_is_tested() -> None:
    assert feature_names() == {*FEATURES, KAI_TOPOLOGIES} - {AUTHORIZER}
    assert feature_names(ADMISSION) < {*FEATURES}


def test_dynamo_needs_no_further_rights_for_start_orders() -> None:
    """Accounts and token Secrets are granted once, whichever feature needs them."""
    ordered = {"config.startOrder.enabled": True}
    assert rights(DYNAMO | ordered) - rights(DYNAMO) == {
        ("", "pods/status", "", verb) for verb in ("get", "list", "watch")
    }


@pytest.mark.parametrize(("dynamo", "more"), [(False, set()), (True, {"nvidia.com"})])
def test_user_roles_write_only_what_users_write(dynamo: bool, more: set[str]) -> None:
    objects = render({"config.dynamo.enabled": dynamo})
    view, edit = (one(objects, "ClusterRole", f"grove:{name}") for name in ("view", "edit"))
    assert (aggregated_to(view), aggregated_to(edit)) == ({"view", "edit", "admin"}, {"edit", "admin"})
    assert {verb for rule in view["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {group for rule in view["rules"] for group in rule["apiGroups"]} == {
        "grove.io",
        "scheduler.grove.io",
        *more,
    }
    written = {resource for rule in edit["rules"] for resource in rule["resources"]}
    graphs = {"dynamographdeployments", "dynamographdeploymentscalingadapters/scale"} if dynamo else set()
    scaled = {"podcliquesets/scale", "podcliques/scale", "podcliquescalinggroups/scale"}
    assert written == {"podcliquesets"} | scaled | graphs


def resources(given: Values) -> set[str]:
    role = one(render(given), "ClusterRole", "grove:system:grove-operator")
    return {resource for rule in role["rules"] for resource in rule["resources"]}


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
    assert configuration({"config.fabrics": None}).fabrics == ("nvidia",)  # the operator's own default
    assert resources({"config.fabrics": None}) == resources({})


def test_secrets_are_read_only_if_asked_for() -> None:
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
    assert readers(DYNAMO) == {}
    discovering = {**DYNAMO, "config.dynamo.imagePullSecretDiscovery": True}
    assert readers(discovering) == {"grove:system:grove-operator-dynamo-pull-secrets": ["list", "watch"]}


def test_local_operator_has_the_rights_of_the_chart():
    """`grove up --operator` applies a file: `python -m tools.local_operator_rights` writes it."""
    assert RIGHTS.read_text() == page(program())
