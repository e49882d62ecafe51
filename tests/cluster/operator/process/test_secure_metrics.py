"""Metrics over HTTPS: read by subjects that may, with the rights of the chart."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import NAMESPACE, operator_account_of
from tests.cluster.operator.support.processes import HERE, OperatorProcess, configuration, running
from tests.cluster.webhooks.harness import eventually
from tests.service_accounts import request_token

pytestmark = pytest.mark.cluster

READER = "grove:system:metrics-reader-metrics"


async def scrape(operator: OperatorProcess, token: str = "", scheme: str = "Bearer") -> tuple[int, str]:
    line = await operator.hear("listening", key="server.metrics.port")
    headers = {"Authorization": f"{scheme} {token}"} if token else {}
    url = f"https://127.0.0.1:{line['port']}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False, headers=headers) as reply:
        return reply.status, await reply.text()


async def test_metrics_need_a_token_with_the_right(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, tmp_path: Path
) -> None:
    values = {"config.server.metrics.secure": True}
    operator_account = await operator_account_of(cluster, values, "metrics")
    tokens = {}
    for name in ("reader", "other"):
        body = {"metadata": {"name": name}}
        await client.create(SERVICE_ACCOUNTS, body, namespace=namespace, as_type=Object)
        tokens[name] = await request_token(client, namespace, name)
    binding = {
        "metadata": {"name": f"read-metrics-{namespace}"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
    }
    await client.create(CLUSTER_ROLE_BINDINGS, binding, as_type=Object)
    config = configuration(leaderElection={"enabled": False})
    config["server"] = {**config["server"], "metrics": {**HERE, "secure": True}}  # type: ignore[dict-item]
    arguments = ("--namespace", NAMESPACE)
    async with running(tmp_path, operator_account.kubeconfig, config, *arguments) as operator:
        assert (await scrape(operator))[0] == 401
        assert (await scrape(operator, "invalid"))[0] == 401
        assert (await scrape(operator, tokens["reader"], "Basic"))[0] == 401
        status, text = await scrape(operator, tokens["other"])
        assert (status, text.splitlines()) == (
            403,
            ["403 Forbidden: send the token of a subject that may get /metrics"],
        )

        async def granted() -> bool:
            return (await scrape(operator, tokens["reader"]))[0] == 200

        await eventually(granted)
        _, text = await scrape(operator, tokens["reader"])
        assert 'grove_http_refused_total{reason="unauthorized",server="metrics"}' in text
        made = [line for line in text.splitlines() if "requests_total" in line and "tokenreviews" in line]
        assert sum(float(line.split()[-1]) for line in made) <= 4, "repeated scrapes need no review"
    await client.delete(CLUSTER_ROLE_BINDINGS, f"read-metrics-{namespace}", as_type=Object)
