"""Objects created before a rule existed, such as upstream's cliques below their minimum after take-over."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from grove.api.crds import crd
from grove.api.types.podclique import PodClique
from grove.api.wire import MOST
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource
from grove.kube.errors import Invalid
from tests.cluster.api.objects import pod_clique
from tests.cluster.conftest import PATIENCE, apply, established, removed

CLIQUES = Resource("old.example.com", "v1alpha1", "podcliques", "PodClique")


def definition(with_rule: bool) -> dict[str, Any]:
    """PodClique's CRD in an API group of its own, so that other tests are not affected."""
    changed = copy.deepcopy(crd.definition(PodClique))
    changed["metadata"]["name"] = CLIQUES.label
    changed["spec"]["group"] = CLIQUES.group
    changed["spec"]["names"] |= {"shortNames": [], "categories": []}
    if not with_rule:
        spec = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["x-kubernetes-validations"]
        for field in ("replicas", "minAvailable"):
            del spec["properties"][field]["maximum"]
    return changed


@pytest.fixture
async def existing(client, namespace):
    """A namespace with cliques from before the rules: `old` below its minimum, `large` above the maximum."""
    await apply(client, definition(with_rule=False))
    async with asyncio.timeout(PATIENCE):
        await established(client, CLIQUES.label)
    body = pod_clique("old", replicas=1, minAvailable=2) | {"apiVersion": CLIQUES.api_version}
    await client.create(CLIQUES, body, namespace=namespace, as_type=Object)
    large = pod_clique("large", replicas=2 * MOST, minAvailable=2) | {"apiVersion": CLIQUES.api_version}
    await client.create(CLIQUES, large, namespace=namespace, as_type=Object)
    await apply(client, definition(with_rule=True))
    async with asyncio.timeout(PATIENCE):
        await refuses(client, namespace, body)
    yield namespace
    await removed(client, CLIQUES.label)


async def refuses(client, namespace: str, body: dict[str, Any]) -> None:
    """Waits until the API server validates with the new schema."""
    another = body | {"metadata": {"name": "another"}}
    while True:
        try:
            await client.create(CLIQUES, another, namespace=namespace, as_type=Object, dry_run=True)
        except Invalid:
            return
        await asyncio.sleep(0.1)


async def test_clique_below_minimum_can_be_patched_and_scaled_out(client, existing):
    status = {"status": {"replicas": 1, "readyReplicas": 1}}
    await client.patch(CLIQUES, "old", status, namespace=existing, subresource="status", as_type=Object)
    labels = {"metadata": {"labels": {"a": "b"}}}
    patched = await client.patch(CLIQUES, "old", labels, namespace=existing, as_type=Object)
    assert patched.metadata.labels == {"a": "b"}
    await client.set_scale(CLIQUES, "old", 2, namespace=existing)
    with pytest.raises(Invalid, match="replicas must be 0 or at least minAvailable"):
        await client.set_scale(CLIQUES, "old", 1, namespace=existing)


async def test_clique_above_maximum_can_only_be_scaled_in(client, existing):
    status = {"status": {"replicas": 1, "readyReplicas": 1}}
    await client.patch(CLIQUES, "large", status, namespace=existing, subresource="status", as_type=Object)
    labels = {"metadata": {"labels": {"a": "b"}}, "spec": {"startsAfter": ["other"]}}
    patched = await client.patch(CLIQUES, "large", labels, namespace=existing, as_type=Object)
    assert patched.metadata.labels == {"a": "b"}
    for count in (2 * MOST + 1, MOST + 1):
        with pytest.raises(Invalid, match=f"should be less than or equal to {MOST}"):
            await client.set_scale(CLIQUES, "large", count, namespace=existing)
    await client.set_scale(CLIQUES, "large", MOST, namespace=existing)
