"""Our CRDs, put into a cluster."""

from __future__ import annotations

from grove.api.crds import crd
from grove.kube.client.client import APPLY, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS


async def install(client: Client) -> None:
    """Apply all of them. The API server serves them a moment later; who watches them is told."""
    for definition in crd.all_definitions():
        name = definition["metadata"]["name"]
        await client.patch(
            CRDS, name, definition, kind=APPLY, field_manager="grove", force=True, as_type=Object
        )
