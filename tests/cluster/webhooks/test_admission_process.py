"""`grove admission` beside `grove operator`: it answers while the control loop is busy, frozen or gone."""

from __future__ import annotations

import asyncio
import signal
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grove import timing
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, RESOURCE_QUOTAS
from grove.kube.errors import Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from grove.webhooks.registrations import account as user_of
from tests.chart import NAMESPACE, Account, account, operator_account_of
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.processes import OperatorProcess, configuration, running
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.webhooks.harness import eventually, good, refusal, registered, registering
from tests.cluster.webhooks.test_process import invalid_set, url_of

pytestmark = pytest.mark.cluster

APART = "apart"
ALONE = {"leaderElection": {"enabled": False}}


@pytest.fixture
async def accounts(cluster: LocalCluster, crds: object, client: Client) -> tuple[Account, Account]:
    """Those of the operator and of the webhooks, with the rights of the chart."""
    operator = await operator_account_of(cluster, {"admission.separate": True}, APART)
    return operator, await account(client, cluster, NAMESPACE, f"grove-admission-{APART}")


@asynccontextmanager
async def admission(
    client: Client, webhooks: Account, namespace: str, folder: Path
) -> AsyncIterator[OperatorProcess]:
    """The admission process, ready, and called by the API server for this namespace."""
    process = running(
        folder, webhooks.kubeconfig, configuration(), "--namespace", NAMESPACE, command="admission"
    )
    async with process as serving:
        bodies = registered(
            await url_of(serving), namespace, operator=user_of(NAMESPACE, f"grove-operator-{APART}")
        )
        async with registering(client, bodies):
            await serving.until_ready()

            async def called() -> bool:
                message = await refusal(client, SETS, invalid_set(), namespace=namespace)
                return "terminationDelay: Invalid value" in message

            await eventually(called)
            yield serving


async def slowest_answer(client: Client, namespace: str, seconds: float) -> float:
    """Asks for so long whether sets are admitted; the seconds of the slowest answer."""
    slowest, until = 0.0, time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        assert await refusal(client, SETS, good(), namespace=namespace) == ""
        assert "denied" in await refusal(client, SETS, invalid_set(), namespace=namespace)
        slowest = max(slowest, (time.monotonic() - began) / 2)
        await asyncio.sleep(0.05)
    return slowest


async def test_admission_answers_while_operator_plans_freezes_or_ends(
    client: Client, accounts: tuple[Account, Account], namespace: str, tmp_path: Path
) -> None:
    operator_account, webhooks = accounts
    # No pod is created: only plans and refused writes keep the operator busy, and not this machine.
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await client.create(RESOURCE_QUOTAS, quota, namespace=namespace, as_type=Object)
    async with admission(client, webhooks, namespace, tmp_path) as serving:
        arguments = ("--namespace", NAMESPACE, "--admission", await url_of(serving))
        slowest = {}
        async with running(
            tmp_path, operator_account.kubeconfig, configuration(**ALONE), *arguments
        ) as operator:
            await operator.until_ready()
            assert not [line for line in operator.lines if line.get("key") == "server.webhooks.port"]
            large = workload("large", clique("worker", replicas=1000), replicas=50)
            await client.create(SETS, large, namespace=namespace, as_type=Object)
            slowest["plan"] = await slowest_answer(client, namespace, 4)
            planned = await operator.metrics()
            assert planned["grove_plan_seconds_count"] > 1
            operator.process.send_signal(signal.SIGSTOP)
            slowest["frozen"] = await slowest_answer(client, namespace, 1)
            operator.process.send_signal(signal.SIGCONT)
            operator.process.kill()
            slowest["gone"] = await slowest_answer(client, namespace, 1)
        assert max(slowest.values()) < timing.WEBHOOK_TIMEOUT_SECONDS / 2
        await client.patch(
            SETS, "large", {"metadata": {"finalizers": None}}, namespace=namespace, as_type=Object
        )
        await client.delete(SETS, "large", namespace=namespace, as_type=Object)


async def test_admission_answers_while_a_peer_holds_connections(
    client: Client, accounts: tuple[Account, Account], namespace: str, tmp_path: Path
) -> None:
    """More than one peer may have, half of them in a handshake and half within a request."""
    _, webhooks = accounts
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with admission(client, webhooks, namespace, tmp_path) as serving:
        port = int((await url_of(serving)).rpartition(":")[2])
        held = []
        for number in range(timing.WEBHOOK_CONNECTIONS_PER_PEER + 100):
            tls = trusting if number % 8 == 0 else None
            stream = await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=("127.0.0.9", 0))
            stream[1].write(b"POST /webhooks/validate-podcliqueset HTTP/1.1\r\n" if tls else b"\x16")
            held.append(stream)
        assert await slowest_answer(client, namespace, 1) < timing.WEBHOOK_TIMEOUT_SECONDS / 2
        found = await serving.metrics()
        refused = sum(found[name] for name in found if name.startswith("grove_http_refused_total"))
        assert refused >= 1
        for _, writer in held:
            writer.transport.abort()
            writer.close()


async def test_operator_is_ready_only_once_admission_answers(
    client: Client, accounts: tuple[Account, Account], namespace: str, tmp_path: Path
) -> None:
    """So an upgrade removes no operator that serves the webhooks before other pods do."""
    operator_account, webhooks = accounts
    nowhere = ("--namespace", NAMESPACE, "--admission", "https://127.0.0.1:1")
    async with running(tmp_path, operator_account.kubeconfig, configuration(**ALONE), *nowhere) as operator:
        await operator.hear("working")
        status, text = await operator.probe("/readyz")
        assert (status, "webhooks that answer" in text) == (503, True)
    async with admission(client, webhooks, namespace, tmp_path) as serving:
        arguments = ("--namespace", NAMESPACE, "--admission", await url_of(serving))
        async with running(
            tmp_path, operator_account.kubeconfig, configuration(**ALONE), *arguments
        ) as operator:
            await operator.until_ready()
            await serving.end()
            assert await operator.probe("/readyz") == (200, "ok\n"), "it does not depend on admission later"


async def test_admission_account_may_only_read_what_rules_need(
    accounts: tuple[Account, Account], client: Client, namespace: str
) -> None:
    _, webhooks = accounts
    async with Client(webhooks.config) as limited:
        await limited.list(SETS, namespace=namespace, as_type=Object)
        with pytest.raises(Forbidden):
            await limited.list(PODS, namespace=namespace, as_type=Object)
        with pytest.raises(Forbidden):
            await limited.create(SETS, good(), namespace=namespace, as_type=Object)
        with pytest.raises(Forbidden):
            await limited.patch(SETS, "any", {}, namespace=namespace, as_type=Object)


@pytest.mark.parametrize("address", ["127.0.0.1:9443", "http://a:1", "https://a", "https://a:b"])
async def test_invalid_address_of_admission_is_one_line(
    cluster: LocalCluster, tmp_path: Path, address: str
) -> None:
    arguments = ("--admission", address)
    async with running(tmp_path, cluster.kubeconfig, configuration(), *arguments) as operator:
        _, stderr = await operator.process.communicate()
    message = f"grove: --admission {address}: not an address: write https://HOST:PORT\n"
    assert (operator.process.returncode, stderr.decode()) == (4, message)
