"""`grove crds --apply` and `grove detach` in unusual situations."""

from __future__ import annotations

import pytest

from grove.api.crds import crd
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.api.objects import pod_clique_set
from tests.cluster.chart.job_runner import run
from tests.cluster.conftest import removed
from tests.cluster.operator.support.objects import SETS, AnyObject

pytestmark = pytest.mark.cluster

NAMES = [definition["metadata"]["name"] for definition in crd.all_definitions()]


async def test_crds_apply_creates_skips_and_updates(site: LocalCluster, admin: Client) -> None:
    await removed(admin, *[each.metadata.name for each in (await admin.list(CRDS, as_type=Object)).items])
    assert await run(["detach"], site.kubeconfig) == (0, "")  # without the CRDs there are no sets
    for action in ("created", "unchanged"):
        code, output = await run(["crds", "--apply"], site.kubeconfig)
        assert (code, output.splitlines()) == (0, [f"{name} {action}" for name in NAMES])
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
