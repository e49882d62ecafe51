"""Applies the manifests of a peer with server-side apply, and waits until its CRDs are established."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

from bench.peer.errors import PeerError
from bench.peer.manifests import Manifest
from grove.kube.cache.cache import Cache
from grove.kube.cache.crd_watch import CustomResourceDefinition
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import APPLY, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from grove.kube.errors import KubeError, NotFound

FIELD_MANAGER = "bench-peer"
PATIENCE = 30.0  # seconds until CRDs are established and their kinds served
PAUSE = 0.2  # seconds between reads of the served kinds, for which there is no watch


async def apply_crds(client: Client, crds: Sequence[Manifest]) -> None:
    """Apply CRDs, and wait until the API server has established all of them."""
    names = [each.name for each in crds]
    await apply(client, crds)
    definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition)
    changed = asyncio.Event()
    definitions.subscribe(lambda _old, _new: changed.set())
    watch = asyncio.create_task(Reflector(client, definitions).run())
    try:
        async with asyncio.timeout(PATIENCE):
            while left := [name for name in names if not _established(definitions, name)]:
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise PeerError(f"CRD {left[0]} is not established: see its conditions, and correct it") from None
    finally:
        watch.cancel()
        await asyncio.wait([watch])


async def apply(client: Client, manifests: Iterable[Manifest], *, dry_run: bool = False) -> None:
    """Apply objects in their order. Raises PeerError for the first that the API server refuses."""
    for manifest in manifests:
        try:
            resource = await _resource(client, manifest)
            namespace = manifest.body["metadata"].get("namespace", "default")
            await client.patch(
                resource,
                manifest.name,
                manifest.body,
                namespace=namespace if resource.namespaced else None,
                kind=APPLY,
                field_manager=FIELD_MANAGER,
                force=True,
                dry_run=dry_run,
                as_type=Object,
            )
        except KubeError as error:
            raise PeerError(f"the API server refuses {manifest}: {error}: correct the file") from None


async def _resource(client: Client, manifest: Manifest) -> Resource:
    """The resource of the manifest's kind. Kinds of new CRDs are served a moment after Established."""
    api_version = str(manifest.body["apiVersion"])
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{version}"
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            served = json.loads((await client.raw("GET", path)).body)["resources"]
        except NotFound:
            served = []
        for each in served:
            if each["kind"] == manifest.kind and "/" not in each["name"]:
                return Resource(group, version, each["name"], manifest.kind, each["namespaced"])
        if asyncio.get_running_loop().time() > deadline:
            remedy = "add its CRD to PEER_DIR, or remove the object"
            raise PeerError(f"the API server does not serve {api_version} of {manifest}: {remedy}")
        await asyncio.sleep(PAUSE)


def _established(definitions: Cache[CustomResourceDefinition], name: str) -> bool:
    found = definitions.get("", name)
    conditions = (found.status.conditions or ()) if found else ()
    return any(each.type == "Established" and each.status == "True" for each in conditions)
