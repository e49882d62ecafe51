"""The manifests of a peer on a real API server: kinds of new CRDs, and what the server refuses."""

from __future__ import annotations

from typing import Any

import pytest
from bench.peer.errors import PeerError
from bench.peer.install import apply, apply_crds
from bench.peer.manifests import Manifest

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Resource

WIDGETS = Resource("peer.example.com", "v1", "widgets", "Widget")


def a_crd(scope: str = "Namespaced") -> Manifest:
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": WIDGETS.group,
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "scope": scope,
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    return an_object(CUSTOM_RESOURCE_DEFINITIONS, WIDGETS.label, spec=spec)


def an_object(resource: Resource, name: str, namespace: str = "", **fields: Any) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return Manifest("file.yaml", {**kind, "metadata": metadata, **fields})


async def test_objects_of_new_crds_are_applied(client: Client, namespace: str):
    await apply_crds(client, [a_crd()])
    try:
        await apply(client, [an_object(WIDGETS, "first", namespace)])
        assert await client.exists_any(WIDGETS, namespace=namespace)
    finally:
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, WIDGETS.label, as_type=Object)


async def test_dry_run_stores_nothing(client: Client, namespace: str):
    await apply(client, [an_object(CONFIG_MAPS, "peer", namespace, data={})], dry_run=True)
    names = [
        each.metadata.name
        for each in (await client.list(CONFIG_MAPS, as_type=Object, namespace=namespace)).items
    ]
    assert "peer" not in names


async def test_refused_crd_is_named_with_its_file(client: Client):
    message = r"refuses CustomResourceDefinition widgets\.peer\.example\.com in file\.yaml: .*spec\.scope"
    with pytest.raises(PeerError, match=message):
        await apply_crds(client, [a_crd(scope="Nowhere")])


async def test_kind_that_is_not_served_is_named(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bench.peer.install.PATIENCE", 0.0)
    message = r"does not serve none\.example\.com/v1 of Thing a in file\.yaml: add its CRD"
    with pytest.raises(PeerError, match=message):
        await apply(client, [an_object(Resource("none.example.com", "v1", "things", "Thing"), "a")])
