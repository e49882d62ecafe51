"""Operator and webhooks with features switched off or on, and only the rights that the chart then grants."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from grove.api.error_codes import ErrorCode
from grove.api.naming.well_known import OperatorEnv
from grove.kube.certs.certificates import issue_authority, issue_serving
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.errors import Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from grove.reasons.codes import ReasonCode
from tests.chart import (
    ACCOUNT,
    ADMISSION,
    APART,
    NAMESPACE,
    Account,
    account,
    one,
    operator_account_of,
    render,
)
from tests.cluster.chart.test_rendered_rights import FEWEST
from tests.cluster.operator.process.test_init_container_rbac import errors, ordered
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.processes import HERE, running
from tests.cluster.operator.support.workloads import small
from tests.cluster.operator.support.world import watching
from tests.cluster.webhooks.test_certificates import HOSTS, provide

pytestmark = pytest.mark.cluster


@pytest.fixture
async def fewest(cluster: LocalCluster, crds: object) -> Account:
    """The account of an operator without any feature."""
    return await operator_account_of(cluster, FEWEST, "fewest")


async def test_operator_without_features_has_all_rights_it_needs(
    client: Client, fewest: Account, namespace: str, tmp_path: Path
) -> None:
    config = yaml.safe_load(one(render(FEWEST), "ConfigMap")["data"]["config.yaml"])
    servers = {"healthProbes": HERE, "metrics": HERE, "webhooks": HERE}
    async with (
        watching(client, fewest.config, namespace) as world,
        running(tmp_path, fewest.kubeconfig, {**config, "server": servers}) as operator,
    ):
        await operator.hear("working")
        await operator.hear("certificate loaded")
        await operator.until_ready()
        await world.create(SETS, small("free"))
        await world.create(SETS, ordered())
        await world.until(lambda: world.get(SETS, "free").status.get("availableReplicas") == 1)
        await world.until(lambda: errors(world, "wl-0-second"))
        (error,) = errors(world, "wl-0-second")
        assert error["code"] == ErrorCode.START_ORDER_DISABLED
        await world.until(
            lambda: ReasonCode.START_ORDER_DISABLED in str(world.get(SETS, "wl").status),
            "the reason on the set",
        )
        assert world.pods(part_of="wl") == []
        await world.delete(SETS, "free")
        await world.delete(SETS, "wl")
        await world.until(lambda: not world.all(SETS), "both sets deleted")
        await operator.end()
        assert [line for line in operator.lines if line["level"] != "info"] == []


EVERYTHING: dict[str, Any] = {
    "config.topologyAwareScheduling.enabled": True,
    "config.network.autoMNNVLEnabled": True,
    "config.authorizer.enabled": True,
    "config.dynamo.enabled": True,
    "config.scheduler.profiles": [{"name": "default-scheduler"}, {"name": "volcano"}],
}


async def webhooks_account(
    cluster: LocalCluster, client: Client, values: dict[str, Any], called: str
) -> Account:
    """The account of the webhooks, with what the chart grants it with these values."""
    await operator_account_of(cluster, APART | values, called)
    return await account(client, cluster, NAMESPACE, f"{ADMISSION}-{called}")


async def serve_without_refusal(folder: Path, webhooks: Account, config: dict[str, Any]) -> None:
    """`grove admission` gets ready, and logs nothing that it is refused."""
    arguments = ("--namespace", NAMESPACE)
    async with running(folder, webhooks.kubeconfig, config, *arguments, command="admission") as serving:
        await serving.until_ready()
        await serving.end()
    assert [line for line in serving.lines if line["level"] != "info"] == []


@pytest.mark.parametrize(("called", "values"), [("none", FEWEST), ("every", EVERYTHING)])
async def test_webhooks_have_all_rights_they_need(
    cluster: LocalCluster,
    client: Client,
    crds: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    called: str,
    values: dict[str, Any],
) -> None:
    monkeypatch.setenv(OperatorEnv.SERVICE_ACCOUNT, ACCOUNT)
    config = yaml.safe_load(one(render(values), "ConfigMap")["data"]["config.yaml"])
    config["server"] = {"healthProbes": HERE, "metrics": HERE, "webhooks": HERE}
    await serve_without_refusal(tmp_path, await webhooks_account(cluster, client, values, called), config)


async def test_webhooks_of_a_namespace_watch_only_this(
    cluster: LocalCluster, client: Client, crds: object, namespace: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    given = provide(tmp_path, issue_serving(issue_authority(now), HOSTS, now))
    values = {"namespaces": [namespace], "config.server.webhooks.certProvisionMode": "manual"}
    webhooks = await webhooks_account(cluster, client, values, "limited")
    async with Client(webhooks.config) as limited:
        await limited.list(SETS, namespace=namespace, as_type=Object)
        for elsewhere in (None, "default"):
            with pytest.raises(Forbidden):
                await limited.list(SETS, namespace=elsewhere, as_type=Object)
    servers = {"healthProbes": HERE, "metrics": HERE, "webhooks": {**HERE, **given}}
    await serve_without_refusal(tmp_path, webhooks, {"namespaces": [namespace], "server": servers})
