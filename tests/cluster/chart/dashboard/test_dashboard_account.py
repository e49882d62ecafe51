"""The account of the dashboard on a real cluster: it reads what docs/rights.md lists, and nothing else."""

from __future__ import annotations

import pytest

from grove.dashboard.rights import Rights
from grove.dashboard.state.live import live_board
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import EVENTS, LEASES, NODES, PODS, SECRETS, Resource
from grove.kube.errors import Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import APART, DASHBOARD, NAMESPACE, UNPLACED, Account, account, may, operator_account_of
from tests.cluster.chart.rights_page import documented
from tests.cluster.chart.test_rbac import DENIED, rights, unprivileged

__all__ = ["unprivileged"]
pytestmark = pytest.mark.cluster

CALLED = "shown"
NAME = f"{DASHBOARD}-{CALLED}"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
WRITES = ("create", "update", "patch", "delete", "deletecollection")
LEASE = f"{NAMESPACE}/grove-operator-leader-election"
OF_LEASE = "The dashboard in the namespace of the Lease"
READ = {("", "nodes", "get"), ("", "nodes", "list")}


@pytest.fixture
async def dashboard(cluster: LocalCluster, client: Client, crds: object) -> Account:
    """The account of the dashboard, with the rights that the chart grants."""
    await operator_account_of(cluster, {**UNPLACED, **APART, "dashboard.enabled": True}, CALLED)
    return await account(client, cluster, NAMESPACE, NAME)


async def test_dashboard_has_only_documented_permissions(
    dashboard: Account, unprivileged: Account, namespace: str
) -> None:
    everywhere, of_lease = documented("The dashboard"), documented(OF_LEASE)
    async with Client(dashboard.config) as shown, Client(unprivileged.config) as anybody:
        for where, expected in ((namespace, everywhere), (NAMESPACE, everywhere | of_lease)):
            assert await rights(shown, where) - await rights(anybody, where) == expected


async def test_dashboard_reads_what_its_account_may_read(dashboard: Account) -> None:
    async with Client(dashboard.config) as shown, live_board(shown, lease=LEASE) as board:
        assert board.picture(Rights()).unread == ()
        state = await board.state()
    assert state.unread == ()
    read = {(kind.group, kind.plural) for kind in (*state.kinds, EVENTS)}
    granted = documented("The dashboard") | documented(OF_LEASE)
    assert {(group, name) for group, name, _, verb in granted if verb == "list"} == read
    assert state.kind(LEASES).listed


async def test_dashboard_may_write_nothing(dashboard: Account, client: Client, namespace: str) -> None:
    kinds = {(group, resource) for group, resource, _, _ in documented("The dashboard")}
    stored = [each for each in sorted(kinds) if not each[1].endswith("reviews")]
    asked = [(group, resource, verb) for group, resource in stored for verb in WRITES]
    asked += [each for each in DENIED if each not in READ]
    permitted = [
        (group, resource, verb)
        for group, resource, verb in asked
        if await may(client, USER, verb, group, resource, namespace)
    ]
    assert permitted == []
    assert await may(client, USER, "list", "", "pods", namespace), "the question itself is valid"


async def test_dashboard_reads_no_secret_and_only_one_lease(dashboard: Account, client: Client) -> None:
    async with Client(dashboard.config) as shown:
        for resource in (NODES, PODS, EVENTS):
            await shown.list(resource, as_type=Object)
        named = "metadata.name=grove-operator-leader-election"
        await shown.list(LEASES, as_type=Object, fields=named, namespace=NAMESPACE)
        for where in (None, "kube-system"):
            with pytest.raises(Forbidden):
                await shown.list(LEASES, as_type=Object, fields=named, namespace=where)
        forbidden: tuple[tuple[Resource, str | None], ...] = (
            (SECRETS, None),
            (SECRETS, NAMESPACE),
            (LEASES, NAMESPACE),
        )
        for resource, where in forbidden:
            with pytest.raises(Forbidden):
                await shown.list(resource, as_type=Object, namespace=where)
