"""Our CRDs, put into a cluster."""

from __future__ import annotations

from grove.api import crd
from grove.kube.client import APPLY, Client
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.wire import Object


async def install(client: Client) -> None:
    """Apply all of them. The API server serves them a moment later; who watches them is told."""
    for definition in crd.all_definitions():
        name = definition["metadata"]["name"]
        await client.patch(
            CRDS, name, definition, kind=APPLY, field_manager="grove", force=True, as_type=Object
        )
