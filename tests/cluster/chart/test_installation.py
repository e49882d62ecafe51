"""The chart on a real cluster: installed, upgraded under live workloads, uninstalled, and installed again.

Helm, the API server and the controllers are real. Nodes run nothing, so the tests run the commands of the
chart's pods, with the pods' own accounts and configuration (tests/cluster/chart/job_runner.py).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from grove.api.crds import crd
from grove.api.meta import ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.errors import AlreadyExists, ApiError, NotFound
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.standins.dra.objects import DOMAINS
from grove.local.standins.dra.objects import definition as compute_domain_crd
from tests.chart import CHART, NAMESPACE, Refused, run
from tests.cluster.api.objects import pod_clique_set
from tests.cluster.chart.chart_operator import local_values, operator_of
from tests.cluster.chart.job_runner import JobRun, running_jobs
from tests.cluster.conftest import apply, established, removed
from tests.cluster.operator.support.fabric import FINALIZER
from tests.cluster.operator.support.objects import SETS, AnyObject, is_ready
from tests.cluster.operator.support.processes import seen
from tests.cluster.operator.support.world import GARBAGE
from tests.namespaces import delete_all, make_namespace

pytestmark = pytest.mark.cluster

JOBS = Resource("batch", "v1", "jobs", "Job")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
OF_THE_SERVICE = {"kubernetes.io/service-name": "grove-operator"}
OF_THE_RELEASE = "app.kubernetes.io/instance=grove"
PATIENTLY = ("--timeout", "5m")


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("chart") / "values.yaml"
    file.write_text(yaml.safe_dump(local_values()))
    return file


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart of an earlier release, in which one CRD has a field more and a field less."""
    chart = tmp_path_factory.mktemp("previous") / "grove"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.9", "appVersion": "0.0.9"}))
    file = chart / "crds" / "grove.io_podcliquesets.yaml"
    definition = yaml.safe_load(file.read_text())
    fields = spec_fields(definition)
    fields["obsolete"] = {"type": "string"}
    del fields["updateStrategy"]["properties"]["paused"]
    file.write_text(yaml.safe_dump(definition))
    return chart


def spec_fields(definition: dict[str, Any]) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    fields: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return fields


async def helm(site: LocalCluster, *arguments: str | Path) -> str:
    """Run Helm in the chart's namespace."""
    return await asyncio.to_thread(run, *arguments, "--namespace", NAMESPACE, kubeconfig=site.kubeconfig)


async def create(admin: Client, name: str, **spec: Any) -> AnyObject:
    body = pod_clique_set(name)
    body["spec"] |= spec
    return await admin.create(SETS, body, namespace="default", as_type=AnyObject)


async def until_available(admin: Client, name: str, replicas: int = 1) -> dict[str, str]:
    """The UIDs of the set's pods, once all are ready."""

    def whole(pods: Cache[AnyObject]) -> bool:
        return len(list(pods)) == replicas and all(map(is_ready, pods))

    pods = Cache(PODS, AnyObject, namespace="default", labels={"app.kubernetes.io/part-of": name})
    await seen(admin, pods, whole)
    return {pod.name: pod.uid for pod in pods}


async def trust(admin: Client) -> dict[str, str]:
    """The caBundles of all webhooks of the chart."""
    found: dict[str, str] = {}
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        for each in (await admin.list(resource, as_type=dict)).items:
            for webhook in each["webhooks"]:
                found[webhook["name"]] = webhook["clientConfig"].get("caBundle", "")
    return found


async def left(admin: Client) -> list[str]:
    """The objects of the chart that still exist, without CRDs."""
    everywhere = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    inside = (DEPLOYMENTS, SERVICES, CONFIG_MAPS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, JOBS)
    return [
        f"{resource.kind} {each.metadata.name}"
        for resource in (*everywhere, *inside)
        for each in (await admin.list(resource, labels=OF_THE_RELEASE, as_type=Object)).items
    ]


async def wait_until_deleted(admin: Client, resource: Resource, namespace: str) -> None:
    """Wait until none is left. The garbage collector needs time to discover new kinds."""
    cache = Cache(resource, AnyObject, namespace=namespace)
    await seen(admin, cache, lambda found: not len(found), patience=GARBAGE)


def outputs_by_job(ran: list[JobRun]) -> dict[str, list[str]]:
    """The output of each Job by name; asserts that all succeeded."""
    assert [(each.job, each.output) for each in ran if each.code] == []
    return {each.job: each.output.splitlines() for each in ran}


@pytest.fixture
async def job_runs(site: LocalCluster, admin: Client) -> AsyncIterator[list[JobRun]]:
    """The namespace with the restricted pod security level, and a runner for its Jobs; deleted afterwards."""
    strict = {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    with suppress(AlreadyExists):
        await admin.create(NAMESPACES, {"metadata": strict}, as_type=Object)
    async with running_jobs(site, admin) as ran:
        yield ran
    with suppress(Refused):
        await helm(site, "uninstall", "grove", "--no-hooks")
    with suppress(NotFound):
        await admin.patch(
            SETS, "live", {"metadata": {"finalizers": None}}, namespace="default", as_type=Object
        )
        await admin.delete(SETS, "live", namespace="default", as_type=Object)
    await delete_all(admin, PODS, "default", grace_seconds=0)
    await wait_until_deleted(admin, PODS, "default")


async def test_upgrade_updates_crds_and_restarts_no_pod(
    site: LocalCluster, admin: Client, job_runs: list[JobRun], values: Path, previous: Path, tmp_path: Path
) -> None:
    # Helm creates only CRDs that do not exist, and those of another test may.
    await removed(admin, *(each["metadata"]["name"] for each in crd.all_definitions()))
    # The Job of an earlier release would apply that release's CRDs; the current program applies its own.
    previous_values = ("--values", values, "--set", "crdInstaller.enabled=false")
    await helm(site, "install", "grove", previous, *previous_values, "--wait", *PATIENTLY)
    async with operator_of(site, admin, tmp_path) as operator:
        await operator.until_ready()
        await create(admin, "live")
        pods = await until_available(admin, "live")
        bundles = await trust(admin)
        assert (len(bundles), all(bundles.values())) == (4, True)
    assert "obsolete" in await fields_of_sets(admin)

    changed = ("--values", values, "--set", "config.logLevel=debug")
    await helm(site, "upgrade", "grove", CHART, *changed, "--wait", *PATIENTLY)
    output = outputs_by_job(job_runs)["grove-crds"]
    assert len(output) == len(crd.all_definitions())
    assert {"podcliquesets.grove.io changed", "podgangs.scheduler.grove.io unchanged"} <= set(output)
    fields = await fields_of_sets(admin)
    assert "obsolete" not in fields
    assert "paused" in fields["updateStrategy"]["properties"]
    assert await trust(admin) == bundles
    async with operator_of(site, admin, tmp_path):
        await admin.patch(SETS, "live", {"spec": {"replicas": 2}}, namespace="default", as_type=AnyObject)
        assert pods.items() <= (await until_available(admin, "live", replicas=2)).items()


async def test_uninstall_keeps_workloads_running_and_deletable(
    site: LocalCluster, admin: Client, job_runs: list[JobRun], values: Path, tmp_path: Path
) -> None:
    await helm(site, "install", "grove", CHART, "--values", values, "--wait", *PATIENTLY)
    assert len(outputs_by_job(job_runs)["grove-crds"]) == len(crd.all_definitions())
    async with operator_of(site, admin, tmp_path):
        created = await create(admin, "live")
        # The API server called the webhook through its Service.
        assert created.spec["template"]["terminationDelay"]
        with pytest.raises(ApiError, match="denied the request"):
            await create(admin, "broken", template={"cliques": []})
        pods = await until_available(admin, "live")
        await create_set_with_domain(admin, "racks")
        job_runs.clear()
        # As its pods would, the operator keeps running while the release is uninstalled.
        await helm(site, "uninstall", "grove", *PATIENTLY)
    (output,) = outputs_by_job(job_runs).values()
    assert [line for line in output if not line.startswith("pod ")] == [
        "podcliqueset default/live detached",
        "podcliqueset racks/live detached",
        "computedomain racks/team detached",
    ]
    assert await left(admin) == []
    assert await until_available(admin, "live") == pods
    assert (await admin.get(SETS, "live", namespace="default", as_type=AnyObject)).metadata.finalizers == ()

    await admin.delete(SETS, "live", namespace="default", as_type=AnyObject)
    await wait_until_deleted(admin, SETS, "default")
    await wait_until_deleted(admin, PODS, "default")
    await admin.delete(NAMESPACES, "racks", as_type=Object)
    namespaces = Cache(NAMESPACES, AnyObject)
    await seen(
        admin, namespaces, lambda found: "racks" not in {each.name for each in found}, patience=GARBAGE
    )
    await removed(admin, compute_domain_crd()["metadata"]["name"])


async def create_set_with_domain(admin: Client, namespace: str) -> None:
    """A set in a namespace of its own with a ComputeDomain, which has the operator's finalizer."""
    await apply(admin, compute_domain_crd())
    await established(admin, compute_domain_crd()["metadata"]["name"])
    await make_namespace(admin, namespace)
    body = pod_clique_set("live")
    body["spec"]["template"]["cliques"][0]["annotations"] = {"nvidia.com/computedomain": "team"}
    await admin.create(SETS, body, namespace=namespace, as_type=AnyObject)
    domains = Cache(DOMAINS, AnyObject, namespace=namespace)
    await seen(admin, domains, lambda found: any(FINALIZER in each.metadata.finalizers for each in found))


async def test_reinstall_takes_over_running_workloads(
    site: LocalCluster, admin: Client, job_runs: list[JobRun], values: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        await helm(site, "install", "grove", CHART, "--values", values, *PATIENTLY)
        async with operator_of(site, admin, tmp_path):
            with suppress(AlreadyExists):
                await create(admin, "live")
            pods = await until_available(admin, "live")
            sets = Cache(SETS, AnyObject, namespace="default")
            await seen(admin, sets, lambda found: all(each.metadata.finalizers for each in found))
        await helm(site, "uninstall", "grove", *PATIENTLY)
        assert await until_available(admin, "live") == pods
    assert [each.job for each in job_runs] == ["grove-crds", "grove-detach"] * 2
    outputs_by_job(job_runs)


async def fields_of_sets(admin: Client) -> dict[str, Any]:
    return spec_fields(await admin.get(CRDS, "podcliquesets.grove.io", as_type=dict))


async def test_local_cluster_is_refused_at_once(site: LocalCluster) -> None:
    """Its nodes run no containers: without the value of the tests, nothing is installed."""
    with pytest.raises(Refused, match="grove up --operator"):
        await helm(site, "install", "grove", CHART)
    assert "grove" not in await helm(site, "list", "--all", "--short")


async def test_upgrade_moves_reviews_to_pods_of_their_own(
    site: LocalCluster, admin: Client, job_runs: list[JobRun], values: Path
) -> None:
    """The Service stays the same and selects both; it finds the pods of the webhooks by their port."""
    options = ("--values", values, "--no-hooks", "--wait", *PATIENTLY)
    await helm(site, "install", "grove", CHART, *options)
    service = await admin.get(SERVICES, "grove-operator", namespace=NAMESPACE, as_type=dict)
    assert await pods_behind(admin, "webhooks") == {"grove-operator"}
    await helm(site, "upgrade", "grove", CHART, *options, "--set", "admission.separate=true")
    after = await admin.get(SERVICES, "grove-operator", namespace=NAMESPACE, as_type=dict)
    assert after["spec"] == service["spec"]
    slices = Cache(ENDPOINT_SLICES, EndpointSlice, namespace=NAMESPACE, labels=OF_THE_SERVICE)
    await seen(admin, slices, lambda found: pods_of(found, "webhooks") == {"grove-admission"})
    assert pods_of(slices, "metrics") == {"grove-admission", "grove-operator"}


class EndpointSlice(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    ports: list[dict[str, Any]] | None = None
    endpoints: list[dict[str, Any]] | None = None


async def pods_behind(admin: Client, port: str) -> set[str]:
    labels = "kubernetes.io/service-name=grove-operator"
    found = await admin.list(ENDPOINT_SLICES, namespace=NAMESPACE, labels=labels, as_type=EndpointSlice)
    return pods_of(found.items, port)


def pods_of(slices: Iterable[EndpointSlice], port: str) -> set[str]:
    """The Deployments of the pods that the Service `grove-operator` sends requests for a port to."""
    return {
        endpoint["targetRef"]["name"].rsplit("-", 2)[0]
        for each in slices
        if port in {known["name"] for known in each.ports or ()}
        for endpoint in each.endpoints or ()
        if endpoint["conditions"].get("ready")
    }
