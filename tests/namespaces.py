"""Namespaces for tests."""

from __future__ import annotations

from contextlib import suppress

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, SERVICE_ACCOUNTS
from grove.kube.errors import AlreadyExists


async def make_namespace(client: Client, name: str) -> None:
    """Create a namespace with its default ServiceAccount. Pods are rejected until it exists, and the
    controller may take longer to create it than the API server waits."""
    await client.create(NAMESPACES, {"metadata": {"name": name}}, as_type=Object)
    with suppress(AlreadyExists):
        account = {"metadata": {"name": "default"}}
        await client.create(SERVICE_ACCOUNTS, account, namespace=name, as_type=Object)
