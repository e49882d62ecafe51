"""`grove initc` against the real API server: what it waits for, what it survives, and when it exits."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import PODS
from grove.local.cluster import lifecycle as local
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.initc.initc_process import create_pod, grant_access, initc, mount_token, set_ready
from tests.cluster.kube.reflector_harness import wired
from tests.clusters import Clusters
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "account"
    folder.mkdir()
    return folder


async def test_initc_waits_until_all_cliques_are_ready_at_once(
    cluster: LocalCluster, client: Client, namespace: str, account: Path
) -> None:
    await mount_token(client, namespace, account)
    for name, clique in {"a-1": "wl-0-a", "a-2": "wl-0-a", "b-1": "wl-0-b"}.items():
        await create_pod(client, namespace, name, clique)
    await create_pod(client, namespace, "wl-0-a-x-1", "wl-0-a-x")
    await create_pod(client, namespace, "wl-0-a-other", "wl-0-a", gang="wl-1")
    async with initc(account, cluster.server, namespace, "-p", "wl-0-a:2", "-p", "wl-0-b:1") as program:
        await program.wait_for_line("waiting for wl-0-a (0 of 2 ready), wl-0-b (0 of 1 ready)")
        await set_ready(client, namespace, "wl-0-a-x-1")
        await set_ready(client, namespace, "wl-0-a-other")
        await set_ready(client, namespace, "a-1")
        await program.wait_for_line("waiting for wl-0-a (1 of 2 ready), wl-0-b (0 of 1 ready)")
        await set_ready(client, namespace, "b-1")
        await program.wait_for_line("waiting for wl-0-a (1 of 2 ready)")
        await set_ready(client, namespace, "a-1", ready=False)
        await program.wait_for_line("waiting for wl-0-a (0 of 2 ready)")
        await set_ready(client, namespace, "a-2")
        await client.delete(PODS, "b-1", namespace=namespace, as_type=Object, grace_seconds=0)
        await program.wait_for_line("waiting for wl-0-a (1 of 2 ready), wl-0-b (0 of 1 ready)")
        await create_pod(client, namespace, "b-2", "wl-0-b")
        await set_ready(client, namespace, "b-2")
        await program.wait_for_line("waiting for wl-0-a (1 of 2 ready)")
        await set_ready(client, namespace, "a-1")
        await program.wait_for_line("all are ready")
        assert await program.ended() == 0


async def test_initc_exits_at_once_if_cliques_are_ready(
    cluster: LocalCluster, client: Client, namespace: str, account: Path
) -> None:
    await mount_token(client, namespace, account)
    await create_pod(client, namespace, "a-1", "wl-0-a")
    await set_ready(client, namespace, "a-1")
    async with initc(account, cluster.server, namespace, "--podcliques=wl-0-a:1") as program:
        assert await program.ended() == 0


async def test_initc_waits_for_its_token(
    cluster: LocalCluster, client: Client, namespace: str, account: Path, tmp_path: Path
) -> None:
    await mount_token(client, namespace, account)
    await create_pod(client, namespace, "a-1", "wl-0-a")
    await set_ready(client, namespace, "a-1")
    empty = tmp_path / "empty"
    empty.mkdir()
    async with initc(empty, cluster.server, namespace, "-p", "wl-0-a:1") as program:
        await program.wait_for_line(f"waiting for {empty}/token")
        for name in ("ca.crt", "token"):
            (empty / name).write_bytes((account / name).read_bytes())
        assert await program.ended() == 0


async def test_initc_without_rbac_retries_until_allowed(
    cluster: LocalCluster, client: Client, namespace: str, account: Path
) -> None:
    await mount_token(client, namespace, account, rights=False)
    await create_pod(client, namespace, "a-1", "wl-0-a")
    await set_ready(client, namespace, "a-1")
    async with initc(account, cluster.server, namespace, "-p", "wl-0-a:1") as program:
        line = await program.wait_for_line("the server refuses (403)")
        assert line.endswith("check Role and RoleBinding; trying again\n")
        await grant_access(client, namespace)
        assert await program.ended() == 0


async def test_initc_uses_new_token_of_recreated_account(
    cluster: LocalCluster, client: Client, namespace: str, account: Path
) -> None:
    await mount_token(client, namespace, account)
    token = (account / "token").read_text()
    (account / "token").write_text("stale")
    await create_pod(client, namespace, "a-1", "wl-0-a")
    await set_ready(client, namespace, "a-1")
    async with initc(account, cluster.server, namespace, "-p", "wl-0-a:1") as program:
        await program.wait_for_line("the server refuses (401)")
        (account / "token").write_text(token)
        assert await program.ended() == 0


async def test_initc_survives_loss_of_connection(
    cluster: LocalCluster, client: Client, namespace: str, account: Path
) -> None:
    """Changes that happen without a connection are not missed."""
    await mount_token(client, namespace, account)
    await create_pod(client, namespace, "a-1", "wl-0-a")
    await create_pod(client, namespace, "b-1", "wl-0-b")
    await set_ready(client, namespace, "b-1")
    async with (
        wired(cluster) as (wire, detour),
        initc(account, detour.server, namespace, "-p", "wl-0-a:1", "-p", "wl-0-b:1") as program,
    ):
        await program.wait_for_line("waiting for wl-0-a (0 of 1 ready)")
        wire.is_down = True
        wire.cut()
        await program.wait_for_line("trying again")
        await set_ready(client, namespace, "a-1")
        await set_ready(client, namespace, "b-1", ready=False)
        wire.is_down = False
        await program.wait_for_line("waiting for wl-0-b (0 of 1 ready)")
        wire.cut()
        await set_ready(client, namespace, "b-1")
        assert await program.ended() == 0


async def test_initc_survives_control_plane_restart(clusters: Clusters, account: Path) -> None:
    first = await clusters.start("restarted")
    namespace = "restarted"
    async with Client(config.load(first.kubeconfig)) as client:
        await make_namespace(client, namespace)
        await mount_token(client, namespace, account)
        await create_pod(client, namespace, "a-1", "wl-0-a")
        async with initc(account, first.server, namespace, "-p", "wl-0-a:1") as program:
            await program.wait_for_line("waiting for wl-0-a (0 of 1 ready)")
            await asyncio.to_thread(local.down, first.state)
            await program.wait_for_line("cannot be reached")
            again = await clusters.start("restarted")
            assert again.server == first.server
            await set_ready(client, namespace, "a-1")
            assert await program.ended() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_initc_ends_on_signal(
    cluster: LocalCluster,
    client: Client,
    namespace: str,
    account: Path,
    number: signal.Signals,
    code: int,
) -> None:
    await mount_token(client, namespace, account)
    await create_pod(client, namespace, "a-1", "wl-0-a")
    async with initc(account, cluster.server, namespace, "-p", "wl-0-a:1") as program:
        await program.wait_for_line("waiting for wl-0-a")
        program.process.send_signal(number)
        assert await program.ended() == code


async def test_invalid_arguments_print_one_line(account: Path) -> None:
    async with initc(account, "https://127.0.0.1:1", "ns", "-p", "wl-0-a:none") as program:
        assert await program.ended() == 1
    assert program.lines == [
        "grove-initc: --podcliques=wl-0-a:none: the count must be a whole number above 0, not 'none'"
    ]
