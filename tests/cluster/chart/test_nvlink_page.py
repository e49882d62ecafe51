"""Runs every command of docs/nvlink.md, in the order of the page: the guide to automatic MNNVL.

Helm, admission, operator, claims and their allocation are real; the driver is a stand-in.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource
from grove.kube.errors import Forbidden, NotFound
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.standins.dra.driver import DraStandIn
from grove.local.standins.dra.objects import DOMAINS, definition
from tests import chart
from tests.cluster.chart.chart_operator import operator_of
from tests.cluster.chart.job_runner import running_jobs
from tests.cluster.chart.test_install_docs import run_commands, scripts_of, shell  # noqa: F401 - a fixture
from tests.cluster.conftest import removed
from tests.cluster.operator.support.fabric import FINALIZER
from tests.cluster.webhooks.harness import eventually

pytestmark = pytest.mark.cluster

PAGE = "docs/nvlink.md"
GROUP = "admissionregistration.k8s.io"
POLICIES = {
    kind: Resource(GROUP, "v1", plural, kind, namespaced=False)
    for kind, plural in (
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    )
}


async def test_nvlink_page_commands_work(
    site: LocalCluster,
    admin: Client,
    shell: dict[str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    (_, installing), *rest = scripts_of(PAGE)
    outputs: list[str] = []
    driver = DraStandIn(admin)
    driver_task = asyncio.create_task(driver.run())
    try:
        async with asyncio.timeout(120.0):
            await driver.ready.wait()
        async with running_jobs(site, admin):
            await run_commands(installing, shell)
            async with operator_of(site, admin, tmp_path) as operator:
                await operator.hear("MNNVL preflight check passed")
                outputs = [await run_commands(script, shell) for _, script in rest]
                await check_deletion_policy(admin, "default")
            await run_commands("helm uninstall grove --namespace grove-system", shell)
    finally:
        driver_task.cancel()
        await asyncio.wait({driver_task})
        await removed(admin, definition()["metadata"]["name"])
    first, scaled, by_hand, by_name = outputs[:4]
    assert first.splitlines()[1].startswith("enabled")
    domain = "my-inference-0  fabric domain Ready, 1/1 nodes ready"
    for words in ("my-inference-0", "my-inference-1", "ComputeDomainCreated", "AllReady", domain):
        assert words in first
    listed = scaled.rpartition("NAME")[2].split()
    assert "my-inference-0" in listed
    assert not {"my-inference-1", "my-inference-2", "my-inference-3"} & set(listed)
    assert FINALIZER in by_hand
    assert "decoders" in by_name
    assert by_name.count("by-name-0-decode-") == 2


async def check_deletion_policy(admin: Client, namespace: str) -> None:
    """With the policy of `protectComputeDomains`, deleting a managed ComputeDomain is rejected."""
    policy = [
        each
        for each in chart.render({"config.network.protectComputeDomains": True})
        if each["kind"] in POLICIES
    ]
    assert not [each for each in chart.render() if each["kind"] in POLICIES]
    carried = {"app.kubernetes.io/managed-by": "grove-operator"}
    body = {
        "apiVersion": DOMAINS.api_version,
        "kind": DOMAINS.kind,
        "metadata": {"name": "protected", "labels": carried},
        "spec": {"channel": {"resourceClaimTemplate": {"name": "protected"}}},
    }
    for each in policy:
        await admin.create(POLICIES[each["kind"]], each, as_type=Object)

    async def denied() -> bool:
        """Whether the policy is enforced; to be polled, since API servers do not report when it is loaded."""
        with suppress(NotFound):
            await admin.get(DOMAINS, "protected", namespace=namespace, as_type=Object)
            try:
                await admin.delete(DOMAINS, "protected", namespace=namespace, as_type=Object)
            except Forbidden as error:
                return "managed by Grove and pods may need it" in str(error)
            return False
        await admin.create(DOMAINS, body, namespace=namespace, as_type=Object)
        return False

    await eventually(denied)
    free = {"metadata": {"annotations": {"grove.io/allow-delete": "true"}}}
    await admin.patch(DOMAINS, "protected", free, namespace=namespace, as_type=Object)
    await admin.delete(DOMAINS, "protected", namespace=namespace, as_type=Object)
    for each in policy:
        await admin.delete(POLICIES[each["kind"]], each["metadata"]["name"], as_type=Object)


def test_nvlink_page_contains_the_examples() -> None:
    for name in ("nvlink", "nvlink-by-name"):
        path = f"examples/{name}.yaml"
        assert path in (chart.ROOT / PAGE).read_text()
        assert yaml.safe_load((chart.ROOT / "docs" / path).read_text())["kind"] == "PodCliqueSet"
