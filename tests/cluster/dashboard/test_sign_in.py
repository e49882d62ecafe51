"""Sign-in with tokens of a real cluster: what ServiceAccounts with different rights see, and what ends it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grove import timing
from grove.dashboard.state.live import LiveBoard, live_board
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    Resource,
)
from tests.cluster.dashboard.servers import Site, site
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.webhooks.harness import eventually
from tests.dashboard.server.running import Events
from tests.namespaces import make_namespace
from tests.service_accounts import request_token

pytestmark = pytest.mark.cluster

SHOWN = [
    {"apiGroups": ["grove.io"], "resources": ["podcliquesets", "podcliques", "podcliquescalinggroups"]},
    {"apiGroups": ["scheduler.grove.io"], "resources": ["podgangs"]},
    {"apiGroups": [""], "resources": ["pods", "events"]},
]
NODES = {"apiGroups": [""], "resources": ["nodes"]}
RBAC = "rbac.authorization.k8s.io"


async def account(client: Client, namespace: str, name: str) -> str:
    """A token of a new ServiceAccount."""
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace=namespace, as_type=Object)
    return await request_token(client, namespace, name)


async def bind(
    client: Client, resource: Resource, role: str, namespace: str, name: str, home: str = ""
) -> None:
    """Give a ServiceAccount a role, in its namespace or in the cluster."""
    body = {
        "metadata": {"name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": home or namespace}],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
    }
    where = namespace if resource.namespaced else None
    await client.create(resource, body, namespace=where, as_type=Object)


@asynccontextmanager
async def roles(client: Client, namespace: str) -> AsyncIterator[tuple[str, str]]:
    """ClusterRoles that list what the page shows, without and with nodes."""
    names = f"workloads-{namespace}", f"everything-{namespace}"
    for name, rules in zip(names, (SHOWN, [*SHOWN, NODES]), strict=True):
        body = {"metadata": {"name": name}, "rules": [{**each, "verbs": ["list"]} for each in rules]}
        await client.create(CLUSTER_ROLES, body, as_type=Object)
    try:
        yield names
    finally:
        for name in names:
            await client.delete(CLUSTER_ROLES, name, as_type=Object)


@asynccontextmanager
async def two_namespaces(client: Client, first: str) -> AsyncIterator[tuple[str, str, LiveBoard]]:
    """A board on which each of two namespaces has a set."""
    second = f"{first}-hidden"
    await make_namespace(client, second)
    try:
        for each in (first, second):
            await client.create(SETS, workload("demo", clique("worker", 1)), namespace=each, as_type=Object)
        async with live_board(client) as board:
            await eventually(lambda: _has(board, first, second))
            yield first, second, board
    finally:
        await client.delete(NAMESPACES, second, as_type=Object)


async def _has(board: LiveBoard, *namespaces: str) -> bool:
    return board.namespaces() >= {*namespaces}


async def seen(served: Site, session: dict[str, str]) -> tuple[set[str], bool, Any]:
    """The namespaces of the sets of a picture, whether it has nodes, and its viewer."""
    picture = await served.json("/api/picture", **session)
    return (
        {key.split("/")[0] for key in picture.get("sets", {})},
        bool(picture.get("nodes")),
        picture["viewer"],
    )


async def test_users_see_what_they_may_list(
    client: Client, crds: object, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "HEARTBEAT_INTERVAL", 0.5)
    async with (
        two_namespaces(client, namespace) as (first, second, board),
        roles(client, namespace) as (workloads, everything),
        site(client, board) as served,
    ):
        tokens = {name: await account(client, first, name) for name in ("none", "one", "all")}
        await bind(client, ROLE_BINDINGS, workloads, first, "one")
        await bind(client, CLUSTER_ROLE_BINDINGS, everything, first, "all")
        try:
            sessions = {name: await served.sign_in(token) for name, token in tokens.items()}
            await check_pictures(served, sessions, first, second)
            await check_pages(served, sessions, first, second)
            await check_changes(client, served, sessions["one"], first, second, workloads)
        finally:
            await client.delete(CLUSTER_ROLE_BINDINGS, everything, as_type=Object)


async def check_pictures(served: Site, sessions: dict[str, dict[str, str]], first: str, second: str) -> None:
    user = f"system:serviceaccount:{first}"
    no_namespaces, nodes, viewer = await seen(served, sessions["none"])
    assert (no_namespaces, nodes) == (set(), False)
    assert viewer == {"name": f"{user}:none", "namespaces": [], "nodes": False, "signsIn": True}
    namespaces, nodes, viewer = await seen(served, sessions["one"])
    assert (namespaces, nodes) == ({first}, False)
    assert viewer == {"name": f"{user}:one", "namespaces": [first], "nodes": False, "signsIn": True}
    namespaces, nodes, viewer = await seen(served, sessions["all"])
    assert namespaces >= {first, second}
    assert nodes
    assert viewer == {"name": f"{user}:all", "signsIn": True}


async def check_pages(served: Site, sessions: dict[str, dict[str, str]], first: str, second: str) -> None:
    """A namespace without rights is answered as one that does not exist."""
    pages = (
        "/api/workload?namespace={}&name=demo",
        "/api/explanation?namespace={}&name=set/demo",
        "/api/object?namespace={}&kind=podcliqueset&name=demo",
    )
    for page in pages:
        visible = await served.get(page.format(first), **sessions["one"])
        assert visible.status == 200, await visible.text()
        hidden, absent = [
            await served.get(page.format(each), **sessions["one"]) for each in (second, f"{second}-absent")
        ]
        assert hidden.status == absent.status == 404
        assert (await absent.text()).replace(f"{second}-absent", second) == await hidden.text()
        assert (await served.get(page.format(first), **sessions["none"])).status == 404
    graph = "/api/object?namespace={}&kind=dynamographdeployment&name=demo"
    assert (await served.get(graph.format(first), **sessions["one"])).status == 404
    assert (await served.get("/api/node?name=x", **sessions["one"])).status == 403
    for name, count in (("none", 0), ("one", 1)):
        hits = (await served.json("/api/search?q=demo", **sessions[name]))["hits"]
        assert [each["namespace"] for each in hits if each["kind"] == "set"] == [first] * count
        assert second not in str(hits)


async def check_changes(
    client: Client, served: Site, session: dict[str, str], first: str, second: str, role: str
) -> None:
    """Deltas of visible namespaces only; rights that are granted or removed reset the stream."""
    version = (await served.json("/api/picture", **session))["version"]
    events = Events(await served.get(f"/api/stream?since={version}", **session))
    await events.next(name="heartbeat")
    for each in (second, first):
        body = workload("later", clique("worker", 1))
        await client.create(SETS, body, namespace=each, as_type=Object)
    while f"{first}/later" not in (delta := (await events.next(name="delta"))[1]):
        assert second not in delta
    assert second not in delta
    await bind(client, ROLE_BINDINGS, role, second, "one", home=first)
    served.clock.now += timing.RIGHTS_GRANTED_KEPT
    await events.next(name="reset")
    assert (await seen(served, session))[0] == {first, second}
    await client.delete(ROLE_BINDINGS, role, namespace=second, as_type=Object)
    await eventually(lambda: _sees_only(served, session, first))


async def _sees_only(served: Site, session: dict[str, str], namespace: str) -> bool:
    """Whether the API server has noticed that a role is removed."""
    served.clock.now += timing.RIGHTS_GRANTED_KEPT
    return (await seen(served, session))[0] == {namespace}


async def test_revoked_token_ends_the_session(client: Client, crds: object, namespace: str) -> None:
    async with live_board(client) as board, site(client, board) as served:
        token = await account(client, namespace, "jane")
        session, bearer = await served.sign_in(token), {"Authorization": f"Bearer {token}"}
        assert (await served.get("/api/picture", **session)).status == 200
        assert (await served.get("/api/picture", **bearer)).status == 200
        events = Events(await served.get("/api/stream?since=x", **session))
        await events.next(name="reset")  # not a version of this process
        for wrong in (token[:-2], "invalid"):
            answer = await served.post("/api/sign-in", json={"token": wrong})
            assert answer.status == 401
            assert "kubectl create token" in (await answer.json())["error"]
        await client.delete(SERVICE_ACCOUNTS, "jane", namespace=namespace, as_type=Object)
        assert (await served.get("/api/picture", **session)).status == 200  # known for a minute

        async def refused() -> bool:
            """The API server itself keeps valid tokens for 10 s."""
            served.clock.now += timing.ACCESS_GRANTED_KEPT
            return (await served.get("/api/picture", **session)).status == 401

        await eventually(refused)
        assert (await served.get("/api/picture", **bearer)).status == 401
