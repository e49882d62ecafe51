"""The chart for some namespaces only: it works there, and everything else is denied to it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from grove.kube.cache.cache import Cache
from grove.kube.certs.certificates import issue_authority, issue_serving
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, NODES, PODS
from grove.kube.errors import ApiError, Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import (
    ACCOUNT,
    ADMISSION,
    APART,
    CHART,
    DASHBOARD,
    NAMESPACE,
    Refused,
    account,
    granted_roles,
    may,
    operator_account_of,
    operator_rights,
    render,
)
from tests.cluster.api.objects import pod_clique_set
from tests.cluster.chart.chart_operator import local_values, operator_of
from tests.cluster.chart.job_runner import JobRun
from tests.cluster.chart.test_installation import PATIENTLY, helm, job_runs, outputs_by_job
from tests.cluster.operator.support.objects import CLIQUES, SETS, AnyObject
from tests.cluster.operator.support.processes import seen
from tests.cluster.webhooks.test_certificates import provide
from tests.namespaces import make_namespace

__all__ = ["job_runs"]
pytestmark = pytest.mark.cluster

MANUAL = {"config.server.webhooks.certProvisionMode": "manual"}
TEAMS = ["team-a", "team-b"]
OTHER = "team-c"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


@pytest.fixture
async def teams(admin: Client) -> AsyncIterator[None]:
    """Two namespaces of the operator, and another one."""
    for name in (*TEAMS, OTHER):
        await make_namespace(admin, name)
    yield
    for name in (*TEAMS, OTHER):
        await admin.delete(NAMESPACES, name, as_type=Object)


def values_file(folder: Path) -> Path:
    """Values with a certificate of the test, as cert-manager would provide it."""
    now = datetime.now(UTC)
    authority = issue_authority(now)
    given = provide(folder, issue_serving(authority, (f"grove-operator.{NAMESPACE}.svc",), now))
    values = local_values() | {"namespaces": TEAMS, "crdInstaller": {"enabled": False}}
    values["config"]["server"]["webhooks"] |= given
    values["webhooks"] = {"caBundle": base64.b64encode(authority.certificate).decode()}
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


async def create(admin: Client, namespace: str, **spec: object) -> AnyObject:
    body = pod_clique_set("live")
    body["spec"] |= spec
    return await admin.create(SETS, body, namespace=namespace, as_type=AnyObject)


async def permitted_elsewhere(
    client: Client, user: str = USER, other: str = OTHER
) -> list[tuple[str, str, str, str]]:
    """The requests outside of its namespaces that the API server permits to an account."""
    asked = [
        (verb, group, resource, namespace)
        for group, resource in (
            ("", "pods"),
            ("", "services"),
            ("", "secrets"),
            ("", "serviceaccounts"),
            ("grove.io", "podcliquesets"),
            ("grove.io", "podcliques"),
            ("scheduler.grove.io", "podgangs"),
            ("rbac.authorization.k8s.io", "roles"),
        )
        for verb in ("list", "create", "patch", "delete")
        for namespace in (other, "kube-system", "")
    ]
    return [each for each in asked if await may(client, user, *each)]


async def test_operator_of_some_namespaces_is_denied_others(
    site: LocalCluster, admin: Client, teams: None, job_runs: list[JobRun], tmp_path: Path
) -> None:
    await helm(site, "install", "grove", CHART, "--values", values_file(tmp_path), *PATIENTLY)
    async with operator_of(site, admin, tmp_path, manual=True) as operator:
        await operator.until_ready()
        foreign = await create(admin, OTHER)
        assert "terminationDelay" not in foreign.spec["template"], "no webhook was called"
        for team in TEAMS:
            assert (await create(admin, team)).spec["template"]["terminationDelay"]
        with pytest.raises(ApiError, match="denied the request"):
            await create(admin, TEAMS[0], template={"cliques": []})
        for team in TEAMS:
            sets = Cache(SETS, AnyObject, namespace=team)
            await seen(admin, sets, lambda found: all(each.status.get("availableReplicas") for each in found))
        foreign = await admin.get(SETS, "live", namespace=OTHER, as_type=AnyObject)
        assert (foreign.metadata.finalizers, foreign.status) == ((), {})
        assert (await admin.list(CLIQUES, namespace=OTHER, as_type=AnyObject)).items == []
        assert await may(admin, USER, "create", "", "pods", TEAMS[1])
        assert await permitted_elsewhere(admin) == []
        credentials = await account(admin, site, NAMESPACE, ACCOUNT)
        async with Client(credentials.config) as client:
            for resource, namespace in ((PODS, OTHER), (PODS, None), (NODES, None)):
                with pytest.raises(Forbidden):
                    await client.list(resource, namespace=namespace, as_type=Object)
        await operator.end()
        assert [line for line in operator.lines if line["level"] != "info"] == [], "nothing was refused to it"
    await helm(site, "uninstall", "grove", *PATIENTLY)
    assert outputs_by_job(job_runs) == {
        "grove-detach": [f"podcliqueset {team}/live detached" for team in TEAMS]
    }


async def test_each_account_of_some_namespaces_is_denied_others(
    cluster: LocalCluster, client: Client, crds: object, namespace: str
) -> None:
    values = APART | MANUAL | {"namespaces": [namespace], "dashboard.enabled": True}
    await operator_account_of(cluster, values, "some")
    creates = {}
    for name in (ACCOUNT, ADMISSION, DASHBOARD):
        user = f"system:serviceaccount:{NAMESPACE}:{name}-some"
        assert await may(client, user, "list", "grove.io", "podcliquesets", namespace), name
        assert await permitted_elsewhere(client, user, "default") == [], name
        assert not await may(client, user, "list", "", "nodes"), name
        creates[name] = await may(client, user, "create", "", "pods", namespace)
    assert creates == {ACCOUNT: True, ADMISSION: False, DASHBOARD: False}


def test_every_right_is_in_a_namespace_or_read_only() -> None:
    both = APART | MANUAL
    whole, part = (operator_rights(values) for values in (both, both | {"namespaces": TEAMS}))
    (read,) = (each for each in part if each["kind"] == "ClusterRole")
    assert read["metadata"]["name"] == "grove:system:grove-operator-read"
    assert {verb for rule in read["rules"] for verb in rule["verbs"]} <= {"get", "list", "watch"}
    granted = {each["metadata"]["namespace"] for each in part if each["kind"] == "Role"}
    assert granted == {*TEAMS, NAMESPACE}

    def resources(rights: list[dict[str, object]], *names: str) -> set[str]:
        roles = [each for each in rights if each["metadata"]["name"] in names and "rules" in each]
        return {resource for role in roles for rule in role["rules"] for resource in rule["resources"]}

    core, webhooks = "grove:system:grove-operator", f"grove:system:{ADMISSION}"
    assert resources(part, core, webhooks, f"{core}-read") == resources(whole, core, webhooks), "none is lost"
    assert not resources(part, core, webhooks) & resources(part, f"{core}-read")
    bound = {(subject["name"], role["metadata"]["name"]) for subject, role in granted_roles(part)}
    assert {(ACCOUNT, f"{core}-read"), (ADMISSION, f"{core}-read"), (ADMISSION, webhooks)} <= bound


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"config.topologyAwareScheduling.enabled": True}, "config.topologyAwareScheduling.enabled needs"),
        ({"config.network.autoMNNVLEnabled": True}, "config.network.autoMNNVLEnabled needs"),
        ({"config.dynamo.topologyAwareScheduling.mode": "kueue"}, "topologyAwareScheduling.mode needs"),
        (
            {"config.scheduler.profiles": [{"name": "default-scheduler", "config": {"placement": "All"}}]},
            "placement of default-scheduler",
        ),
        ({"config.server.webhooks.certProvisionMode": "auto"}, "certProvisionMode to manual"),
        ({"namespaces": ["Team"]}, "namespaces"),
    ],
)
def test_what_needs_the_whole_cluster_is_refused(values: dict[str, object], problem: str) -> None:
    assert render(MANUAL | {"namespaces": TEAMS})
    with pytest.raises(Refused, match=problem):
        render(MANUAL | {"namespaces": TEAMS} | values)
