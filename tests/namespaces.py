"""Namespaces for tests: how they are created, and how their objects are deleted."""

from __future__ import annotations

import json
from contextlib import suppress

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, SERVICE_ACCOUNTS, Resource
from grove.kube.errors import AlreadyExists


async def make_namespace(client: Client, name: str) -> None:
    """Create a namespace with its default ServiceAccount. Pods are rejected until it exists, and the
    controller may take longer to create it than the API server waits."""
    await client.create(NAMESPACES, {"metadata": {"name": name}}, as_type=Object)
    with suppress(AlreadyExists):
        account = {"metadata": {"name": "default"}}
        await client.create(SERVICE_ACCOUNTS, account, namespace=name, as_type=Object)


async def delete_all(
    client: Client, resource: Resource, namespace: str, *, grace_seconds: int | None = None
) -> None:
    """Delete all objects of a kind in a namespace, in one request. The server deletes them one by one, within
    a minute."""
    options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
    body = json.dumps({"apiVersion": "v1", "kind": "DeleteOptions", **options}).encode()
    await client.raw("DELETE", resource.path(namespace), body, timeout=65.0)
