"""The permissions of the chart's ServiceAccount: those of docs/rights.md, and no others."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, ROLES, SECRETS, SERVICE_ACCOUNTS, Resource
from grove.kube.errors import Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import (
    ACCOUNT,
    ADMISSION,
    APART,
    NAMESPACE,
    UNPLACED,
    Account,
    account,
    may,
    operator_account_of,
)
from tests.cluster.chart.rights_page import Right, documented, documented_of_feature

pytestmark = pytest.mark.cluster

_AUTHORIZATION = "authorization.k8s.io"
RULES_REVIEWS = Resource(
    _AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
ON_BY_DEFAULT = (
    "`config.startOrder.enabled`",
    "`nvidia` in `config.fabrics`",
    "any vendor in `config.fabrics`",
)
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}-unplaced"


async def rights(client: Client, namespace: str) -> set[Right]:
    """The permissions in a namespace, as the API server reports them."""
    body = {
        "apiVersion": RULES_REVIEWS.api_version,
        "kind": RULES_REVIEWS.kind,
        "spec": {"namespace": namespace},
    }
    answer: dict[str, Any] = await client.create(RULES_REVIEWS, body, as_type=dict)
    status = answer["status"]
    assert not status["incomplete"], status.get("evaluationError")
    resources = {
        right
        for rule in status["resourceRules"]
        for right in itertools.product(
            rule.get("apiGroups") or (), rule["resources"], rule.get("resourceNames") or [""], rule["verbs"]
        )
    }
    paths = {
        ("", path, "", verb)
        for rule in status["nonResourceRules"]
        for path in rule["nonResourceURLs"]
        for verb in rule["verbs"]
    }
    return resources | paths


@pytest.fixture
async def unprivileged(cluster: LocalCluster, client: Client, namespace: str) -> Account:
    """An account without any permission."""
    body = {"metadata": {"name": "unprivileged"}}
    await client.create(SERVICE_ACCOUNTS, body, namespace=namespace, as_type=Object)
    return await account(client, cluster, namespace, "unprivileged")


@pytest.fixture
async def unplaced(cluster: LocalCluster, crds: object) -> Account:
    """The operator's account where the operator places no gangs: with the fewest permissions."""
    return await operator_account_of(cluster, {**UNPLACED, **APART}, "unplaced")


@pytest.mark.parametrize("place", ["elsewhere", "its own namespace"])
async def test_account_has_only_documented_permissions(
    unplaced: Account, unprivileged: Account, namespace: str, place: str
) -> None:
    where = NAMESPACE if place == "its own namespace" else namespace
    async with Client(unplaced.config) as operator, Client(unprivileged.config) as anybody:
        beyond = await rights(operator, where) - await rights(anybody, where)
    expected = documented("Everywhere").union(*map(documented_of_feature, ON_BY_DEFAULT))
    if where == NAMESPACE:
        expected |= documented("In its own namespace")
    assert beyond == expected


@pytest.mark.parametrize("place", ["elsewhere", "its own namespace"])
async def test_webhooks_have_only_documented_permissions(
    cluster: LocalCluster, client: Client, unprivileged: Account, namespace: str, place: str
) -> None:
    await operator_account_of(cluster, {**UNPLACED, **APART}, "unplaced")  # and that of the webhooks
    webhooks = await account(client, cluster, NAMESPACE, f"{ADMISSION}-unplaced")
    where = NAMESPACE if place == "its own namespace" else namespace
    async with Client(webhooks.config) as admission, Client(unprivileged.config) as anybody:
        beyond = await rights(admission, where) - await rights(anybody, where)
    expected = documented("The webhooks").union(
        *(documented_of_feature(feature, ADMISSION) for feature in ON_BY_DEFAULT)
    )
    if where == NAMESPACE:
        expected |= documented("The webhooks in their own namespace")
    assert beyond == expected


PLACING: dict[str, Any] = {
    **APART,
    "config.scheduler.profiles": [{"name": "default-scheduler", "config": {"placement": "All"}}],
}


async def test_placement_adds_only_documented_permissions(cluster: LocalCluster, unplaced: Account) -> None:
    placing = await operator_account_of(cluster, PLACING, "more")
    where = "kube-system"  # of the scheduler's Lease
    async with Client(unplaced.config) as plain, Client(placing.config) as more:
        added = await rights(more, where) - await rights(plain, where)
    slices = documented_of_feature("any vendor in `config.fabrics`")
    assert added == documented("To place gangs") - documented("Everywhere") - slices


DENIED = [
    *[
        ("", "secrets", verb)
        for verb in ("get", "list", "watch", "update", "patch", "delete", "deletecollection")
    ],
    *[
        ("", resource, "create")
        for resource in ("pods/exec", "pods/attach", "pods/portforward", "pods/eviction")
    ],
    *[("", "pods/log", "get"), ("", "pods/ephemeralcontainers", "patch"), ("", "pods/binding", "create")],
    *[("", "serviceaccounts/token", "create"), ("", "serviceaccounts", "impersonate")],
    *[("", "users", "impersonate"), ("", "groups", "impersonate")],
    *[("", "nodes", verb) for verb in ("get", "list", "patch", "update", "delete")],
    *[("", "nodes/proxy", "get"), ("", "configmaps", "get"), ("", "configmaps", "create")],
    *[("", "namespaces", verb) for verb in ("get", "list", "create", "patch", "delete")],
    *[("", "persistentvolumes", "create"), ("", "persistentvolumeclaims", "create")],
    *[
        ("rbac.authorization.k8s.io", kind, verb)
        for kind in ("roles", "clusterroles")
        for verb in ("escalate", "bind", "update", "patch")
    ],
    *[("rbac.authorization.k8s.io", kind, "create") for kind in ("clusterroles", "clusterrolebindings")],
    *[("apps", kind, "create") for kind in ("deployments", "daemonsets", "statefulsets")],
    ("batch", "jobs", "create"),
    *[("grove.io", "podcliquesets", verb) for verb in ("create", "update", "delete", "deletecollection")],
    *[
        ("admissionregistration.k8s.io", kind, verb)
        for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
        for verb in ("create", "delete", "patch", "list")
    ],
    *[("apiextensions.k8s.io", "customresourcedefinitions", verb) for verb in ("create", "patch", "delete")],
    *[("coordination.k8s.io", "leases", verb) for verb in ("get", "patch", "create")],
    ("certificates.k8s.io", "certificatesigningrequests", "create"),
]


async def test_dangerous_requests_are_denied(unplaced: Account, client: Client, namespace: str) -> None:
    async def allowed(group: str, resource: str, verb: str) -> bool:
        return await may(client, USER, verb, group, resource, namespace)

    assert [each for each in DENIED if await allowed(*each)] == []
    assert await allowed("", "secrets", "create")  # the request itself is valid


async def test_account_cannot_escalate_permissions(unplaced: Account, namespace: str) -> None:
    def role(*resources: str) -> dict[str, Any]:
        rule = {"apiGroups": [""], "resources": list(resources), "verbs": ["get", "list", "watch"]}
        return {"metadata": {"name": f"see-{len(resources)}"}, "rules": [rule]}

    async with Client(unplaced.config) as operator:
        await operator.create(ROLES, role("pods", "pods/status"), namespace=namespace, as_type=Object)
        with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
            await operator.create(ROLES, role("secrets"), namespace=namespace, as_type=Object)


async def test_account_cannot_read_secret_it_created(unplaced: Account, namespace: str) -> None:
    async with Client(unplaced.config) as operator:
        body = {"metadata": {"name": "made"}, "stringData": {"a": "b"}}
        await operator.create(SECRETS, body, namespace=namespace, as_type=Object)
        with pytest.raises(Forbidden):
            await operator.get(SECRETS, "made", namespace=namespace, as_type=Object)
        assert (await operator.list(PODS, namespace=namespace, as_type=Object)).items == []
