"""The CRDs on the real API server: established, served as declared, unchanged when applied again."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tools.openapi_union import covers

from grove.api.crds import crd, openapi
from grove.api.types.registry import KINDS
from tests.cluster.api.objects import RESOURCES, create, group, pod_clique, pod_clique_set
from tests.cluster.conftest import apply
from tests.clusters import programs
from tools import kubernetes_openapi

GROUPS = {"grove.io", "scheduler.grove.io"}


@pytest.mark.proves("schemas", scheduler="any")
async def test_all_crds_are_established(crds):
    conditions = {
        name: {each["type"]: each["status"] for each in shown["status"]["conditions"]}
        for name, shown in crds.items()
    }
    assert {"clustertopologies.grove.io", "clustertopologybindings.grove.io"} <= conditions.keys()
    assert set(conditions) == {kind.KIND.crd_name for kind in KINDS}
    for name, statuses in conditions.items():
        assert statuses == {"Established": "True", "NamesAccepted": "True"}, name


async def test_short_names_categories_subresources_are_served(crds, client):
    served = {}
    for api_group in GROUPS:
        listing = await client.raw("GET", f"/apis/{api_group}/v1alpha1")
        served |= {each["name"]: each for each in msgspec.json.decode(listing.body)["resources"]}
    for kind in KINDS:
        about = kind.KIND
        assert served[about.plural]["shortNames"] == list(about.short_names)
        assert served[about.plural]["categories"] == ["grove"]
        assert f"{about.plural}/status" in served
        assert (f"{about.plural}/scale" in served) == (about.scale is not None)


@pytest.mark.proves("schemas", scheduler="any")
async def test_server_stores_schemas_as_generated(crds):
    for definition in crd.all_definitions():
        stored = crds[definition["metadata"]["name"]]["spec"]["versions"]
        assert stored == definition["spec"]["versions"]


async def test_applying_crds_again_changes_nothing(crds, client):
    for definition in crd.all_definitions():
        before = crds[definition["metadata"]["name"]]
        again = await apply(client, definition)
        assert again["metadata"]["generation"] == before["metadata"]["generation"]


async def test_openapi_extract_covers_running_server(client):
    assert covers(openapi.extract(), await kubernetes_openapi.fetch(client))


async def kubectl(cluster, *arguments: str) -> list[str]:
    program = programs()["kubectl"]
    process = await asyncio.create_subprocess_exec(
        program, "--kubeconfig", cluster.kubeconfig, *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().splitlines()


@pytest.mark.parametrize("body", [pod_clique_set(), pod_clique(), group()], ids=lambda body: body["kind"])
async def test_kubectl_shows_declared_columns(crds, cluster, client, namespace, body):
    await create(client, body, namespace)
    (about,) = (kind.KIND for kind in KINDS if kind.KIND.name == body["kind"])
    header, _ = await kubectl(cluster, "get", about.short_names[0], "-n", namespace, "-o", "wide")
    assert header.split() == ["NAME", *(column.name.upper() for column in about.columns)]


async def test_category_lists_all_our_kinds(crds, cluster, client, namespace):
    for body in (pod_clique_set(), pod_clique(), group()):
        await create(client, body, namespace)
    shown = await kubectl(cluster, "get", "grove", "-n", namespace, "-o", "name")
    assert {
        "podcliqueset.grove.io/inference",
        "podclique.grove.io/clique",
        "podcliquescalinggroup.grove.io/group",
    } <= set(shown)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_kind_is_listed_by_its_resource(crds, client, kind):
    listing = await client.list(RESOURCES[kind.KIND.name], as_type=kind)
    assert listing.resource_version
