"""The chart on this machine: values for local addresses, and the operator process of its Deployment."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS, DEPLOYMENTS
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import ACCOUNT, NAMESPACE, account
from tests.cluster.chart.job_runner import WAIT
from tests.cluster.operator.support.processes import OperatorProcess, running

ADDRESS = "127.96.100.1"
"""The address of the operator's Service, on which the operator process listens."""


def free_port() -> int:
    with socket.create_server((ADDRESS, 0)) as server:
        return int(server.getsockname()[1])


def local_values() -> dict[str, Any]:
    """Values that differ from the defaults: local addresses, and pods of Jobs that the test runs itself."""
    servers = ("webhooks", "healthProbes", "metrics")
    ports = {name: {"port": free_port(), "bindAddress": ADDRESS} for name in servers}
    return {
        "allowLocalCluster": True,
        "admission": {"separate": False},  # one process is simpler; test_admission.py has two
        "service": {"clusterIP": ADDRESS},
        "jobs": {"podAnnotations": WAIT},
        "config": {"server": ports},
    }


@asynccontextmanager
async def operator_of(
    site: LocalCluster, admin: Client, folder: Path, *, manual: bool = False
) -> AsyncIterator[OperatorProcess]:
    """The operator process with the account and the ConfigMap of the Deployment. `manual`: its certificate is
    provided as files."""
    deployment = await admin.get(DEPLOYMENTS, "grove-operator", namespace=NAMESPACE, as_type=dict)
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["containers"][0]["args"][0], pod["serviceAccountName"]) == ("operator", ACCOUNT)
    (name,) = (each["configMap"]["name"] for each in pod["volumes"] if each["name"] == "config")
    config = (await admin.get(CONFIG_MAPS, name, namespace=NAMESPACE, as_type=dict))["data"]["config.yaml"]
    credentials = await account(admin, site, NAMESPACE, ACCOUNT)
    async with running(folder, credentials.kubeconfig, yaml.safe_load(config)) as operator:
        await operator.hear("working")
        if not manual:
            await operator.hear("certificate loaded")
        yield operator
