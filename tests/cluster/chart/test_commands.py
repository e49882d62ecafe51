"""`grove crds --apply` and `grove detach` in unusual situations."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest

from grove.api.crds import crd
from grove.cli.commands.detach import detach_all
from grove.fabrics.registry import providers
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.errors import AlreadyExists, KubeError
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.standins.dra.objects import DOMAINS
from grove.local.standins.dra.objects import definition as compute_domain_crd
from tests.chart import NAMESPACE, Account, account, hooked, render, until_granted
from tests.chart import apply as apply_right
from tests.cluster.api.objects import pod_clique_set
from tests.cluster.chart.job_runner import run
from tests.cluster.conftest import apply, established, removed
from tests.cluster.operator.support.fabric import FINALIZER
from tests.cluster.operator.support.objects import SETS, AnyObject
from tests.fabrics.example_vendor import Example
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

NAMES = [definition["metadata"]["name"] for definition in crd.all_definitions()]


async def discovered(admin: Client) -> set[str]:
    """The names of our CRDs that discovery lists."""
    groups = {name.partition(".")[2] for name in NAMES}
    found = {}
    for group in groups:
        reply = await admin.raw("GET", f"/apis/{group}/v1alpha1")
        found[group] = {each["name"] for each in msgspec.json.decode(reply.body)["resources"]}
    return {f"{name}.{group}" for group, names in found.items() for name in names if "/" not in name}


async def test_crds_apply_creates_skips_and_updates(site: LocalCluster, admin: Client) -> None:
    await removed(admin, *[each.metadata.name for each in (await admin.list(CRDS, as_type=Object)).items])
    assert await run(["detach"], site.kubeconfig) == (0, "")  # without the CRDs there are no sets
    for action in ("created", "unchanged"):
        code, output = await run(["crds", "--apply"], site.kubeconfig)
        assert (code, output.splitlines()) == (0, [f"{name} {action}" for name in NAMES])
        assert await discovered(admin) == set(NAMES), "kubectl finds each kind at once"
    await admin.patch(CRDS, NAMES[0], {"spec": {"names": {"shortNames": ["odd"]}}}, as_type=Object)
    code, output = await run(["crds", "--apply"], site.kubeconfig)
    assert (code, output.splitlines()[0]) == (0, f"{NAMES[0]} changed")
    updated = await admin.get(CRDS, NAMES[0], as_type=dict)
    assert updated["spec"]["names"]["shortNames"] == crd.all_definitions()[0]["spec"]["names"]["shortNames"]


async def test_detach_keeps_other_finalizers(site: LocalCluster, admin: Client) -> None:
    assert (await run(["crds", "--apply"], site.kubeconfig))[0] == 0
    body = pod_clique_set("shared")
    body["metadata"]["finalizers"] = ["example.com/mine", "grove.io/podcliqueset.grove.io"]
    await admin.create(SETS, body, namespace="default", as_type=AnyObject)
    assert await run(["detach"], site.kubeconfig) == (0, "podcliqueset default/shared detached\n")
    found = await admin.get(SETS, "shared", namespace="default", as_type=AnyObject)
    assert found.metadata.finalizers == ("example.com/mine",)
    assert await run(["detach"], site.kubeconfig) == (0, "")
    await admin.patch(
        SETS, "shared", {"metadata": {"finalizers": None}}, namespace="default", as_type=AnyObject
    )
    await admin.delete(SETS, "shared", namespace="default", as_type=AnyObject)


ISLANDS = {"apiGroups": ["example.com"], "resources": ["islands"], "verbs": ["list", "patch"]}
EXAMPLE_AND_NVIDIA = providers(("example", "nvidia"), {"example": Example})


async def uninstaller_of(cluster: LocalCluster, admin: Client, rules: list[dict[str, list[str]]]) -> Account:
    """The account of the chart's Job that detaches, with these additional rules."""
    rendered = render({"uninstaller.additionalRules": rules})
    hooks = [each for each in rendered if hooked(each) == "post-delete" and each["kind"] != "Job"]
    for right in hooks:
        await apply_right(admin, right)
    await until_granted(admin, hooks)
    return await account(admin, cluster, NAMESPACE, "grove-detach")


async def test_detach_without_rights_to_one_vendor_goes_on(
    site: LocalCluster, admin: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(AlreadyExists):
        await make_namespace(admin, NAMESPACE)
    await apply(admin, compute_domain_crd())
    await established(admin, compute_domain_crd()["metadata"]["name"])
    body = {
        "apiVersion": DOMAINS.api_version,
        "kind": DOMAINS.kind,
        "metadata": {"name": "team", "finalizers": [FINALIZER]},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "team"}}},
    }
    await admin.create(DOMAINS, body, namespace="default", as_type=AnyObject)
    plain = await uninstaller_of(site, admin, [])
    with pytest.raises(KubeError, match=r"islands\.example\.com is forbidden"):
        await detach_all(plain.config, EXAMPLE_AND_NVIDIA)
    assert capsys.readouterr().out == "computedomain default/team detached\n"
    more = await uninstaller_of(site, admin, [ISLANDS])
    await detach_all(more.config, EXAMPLE_AND_NVIDIA)
    await removed(admin, compute_domain_crd()["metadata"]["name"])
