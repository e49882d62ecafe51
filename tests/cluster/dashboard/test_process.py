"""`grove dashboard` as a process: with sign-in, attacked and restarted, and with the rights of a tenant."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from grove import timing
from grove.dashboard.server.requests.presented import COOKIE
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.cli.commands import LiveCommand, grove, live, tenant_kubeconfig
from tests.cluster.dashboard.test_sign_in import account
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload

pytestmark = pytest.mark.cluster


@asynccontextmanager
async def serving(*arguments: str) -> AsyncIterator[tuple[LiveCommand, str]]:
    """The command, and the address of its page."""
    async with live("dashboard", "--no-browser", *arguments) as command:
        yield command, (await command.until("The dashboard is at")).split()[4].rstrip("/")


def browser() -> ClientSession:
    return ClientSession(cookie_jar=DummyCookieJar(), connector=TCPConnector(ssl=False, limit=0))


async def test_signed_in_process_under_attack_and_restarted(
    client: Client, cluster: LocalCluster, crds: object, namespace: str
) -> None:
    token = await account(client, namespace, "jane")
    arguments = ("--sign-in", "--bind", "127.0.0.1", "--kubeconfig", str(cluster.kubeconfig), "-n", namespace)
    async with serving(*arguments, "--port", "0") as (command, address), browser() as http:
        answer = await http.post(f"{address}/api/sign-in", json={"token": token})
        session = {"Cookie": f"{COOKIE}={SimpleCookie(answer.headers['Set-Cookie'])[COOKIE].value}"}
        assert (await http.get(f"{address}/readyz")).status == 200
        await check_refusals(http, address, session)
        await check_half_open_streams(http, address, session)
        command.process.send_signal(signal.SIGTERM)
        code, errors = await command.end()
        assert code == 0
        assert all("refused" in line for line in errors.splitlines())
        assert len(errors.splitlines()) < 5, "one line for each kind of refusal"
        port = address.rpartition(":")[2]
        async with serving(*arguments, "--port", port):
            assert (await http.get(f"{address}/api/picture", headers=session)).status == 401


async def check_refusals(http: ClientSession, address: str, session: dict[str, str]) -> None:
    evil = {"Origin": "https://evil.example"}
    answer = await http.post(f"{address}/api/sign-out", headers={**session, **evil})
    assert answer.status == 403
    answer = await http.get(f"{address}/api/picture", headers={**session, "Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403
    assert (await http.get(f"{address}/api/search?q={'x' * 5000}", headers=session)).status == 400
    assert (await http.get(f"{address}/static/%2e%2e/server/api.py")).status == 404
    assert (await http.post(f"{address}/api/sign-in", json={"token": "invalid"})).status == 401
    assert (await http.get(f"{address}/api/picture", headers=session)).status == 200


async def check_half_open_streams(http: ClientSession, address: str, session: dict[str, str]) -> None:
    """Streams that are never read, and heads that never end: others are answered all the same."""
    host, _, port = address.removeprefix("https://").partition(":")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    version = (await (await http.get(f"{address}/api/picture", headers=session)).json())["version"]
    head = (
        f"GET /api/stream?since={version} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {session['Cookie']}\r\n"
    )

    async def attack(number: int) -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection(host, int(port), ssl=trusting)
        writer.write(head.encode() + b"\r\n" * (number % 2))
        return writer

    attackers = []
    for begin in range(0, 120, 20):
        attackers += await asyncio.gather(*(attack(begin + each) for each in range(20)))
    async with asyncio.timeout(2 * timing.RESPONSE_TIMEOUT):
        answer = await http.get(f"{address}/api/search?q=x", headers=session)
        while answer.status == 429:  # the requests of the session were counted, too
            await asyncio.sleep(int(answer.headers["Retry-After"]))
            answer = await http.get(f"{address}/api/search?q=x", headers=session)
        assert answer.status == 200
        assert (await http.get(f"{address}/healthz")).status == 200
    for writer in attackers:
        writer.transport.abort()


async def test_tenant_sees_their_namespace(
    client: Client, cluster: LocalCluster, crds: object, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = await tenant_kubeconfig(client, cluster, namespace, tmp_path)
    await client.create(SETS, workload("demo", clique("worker", 1)), namespace=namespace, as_type=Object)
    at = ("--port", "0", "--kubeconfig", kubeconfig)
    async with serving(*at, "-n", namespace) as (command, address), browser() as http:
        answer = await http.get(f"{address}/api/picture")
        picture: dict[str, Any] = json.loads(await answer.read())
        assert {*picture["sets"]} == {f"{namespace}/demo"}
        assert picture["viewer"] == {"namespaces": [namespace], "nodes": False}
        assert any(namespace in line for line in picture["unread"])
        assert (await command.interrupt()) == (130, "grove: interrupted\n")


async def test_namespace_that_does_not_exist_is_said_on_the_page(cluster: LocalCluster, crds: object) -> None:
    at = ("--port", "0", "--kubeconfig", str(cluster.kubeconfig))
    async with serving(*at, "-n", "nonexist") as (_, address), browser() as http:
        picture = json.loads(await (await http.get(f"{address}/api/picture")).read())
        line = "namespace nonexist did not exist when the dashboard was started: check -n"
        assert picture["unread"][0] == line


async def test_cluster_that_is_away_is_one_line(tmp_path: Path) -> None:
    kubeconfig = {
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {"token": "x"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(kubeconfig))
    ended = await grove("dashboard", "--port", "0", "--kubeconfig", str(tmp_path / "config"))
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "127.0.0.1:1" in ended.err
