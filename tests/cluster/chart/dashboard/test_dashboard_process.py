"""`grove dashboard` with the rights of the chart, read by users with rights of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec import Struct

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    NAMESPACES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
)
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import (
    DASHBOARD,
    NAMESPACE,
    account,
    aggregated_to,
    apply,
    may,
    operator_account_of,
    render,
)
from tests.cluster.api.objects import pod_clique_set
from tests.cluster.chart.dashboard.dashboard_process import Dashboard, dashboard_of
from tests.cluster.chart.test_rendering import MANUAL, Values
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import eventually
from tests.namespaces import make_namespace
from tests.service_accounts import request_token

pytestmark = pytest.mark.cluster

ON: Values = {"dashboard.enabled": True}
GROUP = "rbac.authorization.k8s.io"


class Tokens(Struct, frozen=True):
    """Tokens of users: one with `view` in a namespace, an administrator, and one without rights."""

    viewer: str
    admin: str
    stranger: str


@pytest.fixture
async def other(client: Client, namespace: str) -> AsyncIterator[str]:
    """A second namespace; both have a set."""
    name = f"{namespace}-other"
    await make_namespace(client, name)
    for each in (namespace, name):
        await client.create(SETS, pod_clique_set("chat"), namespace=each, as_type=Object)
    yield name
    await client.delete(NAMESPACES, name, as_type=Object)


@pytest.fixture
async def tokens(client: Client, crds: object, namespace: str) -> AsyncIterator[Tokens]:
    """Tokens of three ServiceAccounts."""
    for each in render():
        if aggregated_to(each):
            await apply(client, each)
    users = ("viewer", "admin", "stranger")
    for user in users:
        body = {"metadata": {"name": user}}
        await client.create(SERVICE_ACCOUNTS, body, namespace=namespace, as_type=Object)

    def binding(name: str, role: str, user: str) -> dict[str, object]:
        return {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": namespace}],
        }

    everywhere = f"dashboard-test-{namespace}"
    await client.create(
        ROLE_BINDINGS, binding("viewer", "view", "viewer"), namespace=namespace, as_type=Object
    )
    await client.create(CLUSTER_ROLE_BINDINGS, binding(everywhere, "cluster-admin", "admin"), as_type=Object)
    viewer = f"system:serviceaccount:{namespace}:viewer"
    # The controller of aggregated roles does not report when it is done.
    await eventually(lambda: may(client, viewer, "list", "scheduler.grove.io", "podgangs", namespace))
    yield Tokens(*[await request_token(client, namespace, user) for user in users])
    await client.delete(CLUSTER_ROLE_BINDINGS, everywhere, as_type=Object)


async def check_viewer(dashboard: Dashboard, tokens: Tokens, namespace: str, other: str) -> None:
    """A user with `view` in one namespace sees this one, and nothing of others."""
    async with dashboard.user(tokens.viewer) as viewer:
        picture = await viewer.read("/api/picture")
        assert list(picture["sets"]) == [f"{namespace}/chat"]
        assert not picture.get("nodes")
        assert picture["viewer"]["nodes"] is False
        assert other not in str(picture)
        explained = await viewer.read("/api/explanation", namespace=namespace, name="set/chat")
        assert explained["explanation"]
        wanted = {"kind": "podcliqueset", "name": "chat"}
        assert (await viewer.ask("/api/object", namespace=namespace, **wanted))[0] == 200
        assert (await viewer.ask("/api/object", namespace=other, **wanted))[0] == 404


async def test_dashboard_of_the_chart_shows_what_users_may_list(
    cluster: LocalCluster, client: Client, tokens: Tokens, namespace: str, other: str
) -> None:
    await operator_account_of(cluster, ON, "whole")
    credentials = await account(client, cluster, NAMESPACE, f"{DASHBOARD}-whole")
    async with dashboard_of(ON, credentials.kubeconfig) as dashboard:
        assert [await dashboard.status(path) for path in ("/healthz", "/readyz")] == [200, 200]
        assert await dashboard.status("/api/picture") == 401
        await check_viewer(dashboard, tokens, namespace, other)
        async with dashboard.user(tokens.admin) as admin:
            picture = await admin.read("/api/picture")
            assert {f"{namespace}/chat", f"{other}/chat"} <= {*picture["sets"]}
            assert picture["nodes"]
            assert not picture.get("unread")
            explained = await admin.read("/api/explanation", namespace=namespace, name="set/chat")
            assert explained["unread"] == []
        async with dashboard.user(tokens.stranger) as stranger:
            picture = await stranger.read("/api/picture")
            assert not any(picture.get(part) for part in ("sets", "gangs", "nodes", "events"))


async def test_dashboard_of_some_namespaces_works_without_nodes(
    cluster: LocalCluster, client: Client, tokens: Tokens, namespace: str, other: str
) -> None:
    values = {**ON, **MANUAL, "namespaces": [namespace, other]}
    await operator_account_of(cluster, values, "part")
    credentials = await account(client, cluster, NAMESPACE, f"{DASHBOARD}-part")
    async with dashboard_of(values, credentials.kubeconfig) as dashboard:
        assert await dashboard.status("/readyz") == 200
        await check_viewer(dashboard, tokens, namespace, other)
        async with dashboard.user(tokens.admin) as admin:
            picture = await admin.read("/api/picture")
            assert {*picture["sets"]} == {f"{namespace}/chat", f"{other}/chat"}
            assert not picture.get("nodes")
            assert picture.get("connection", {}).get("connected", True)
            explained = await admin.read("/api/explanation", namespace=other, name="set/chat")
            assert explained["explanation"]["waits"]
