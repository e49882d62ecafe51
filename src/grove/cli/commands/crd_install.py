"""Installs the CRDs for `grove demo` and for tests."""

from __future__ import annotations

from grove.api.crds import crd
from grove.kube.client.client import APPLY, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS


async def install(client: Client) -> None:
    """Apply all CRDs. The API server serves the kinds a moment later; watches of CRDs report when."""
    for definition in crd.all_definitions():
        name = definition["metadata"]["name"]
        await client.patch(
            CRDS, name, definition, kind=APPLY, field_manager="grove", force=True, as_type=Object
        )
