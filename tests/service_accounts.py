"""Tokens of ServiceAccounts for tests."""

from __future__ import annotations

import json

from grove.kube.client.client import Client
from grove.kube.client.resource import SERVICE_ACCOUNTS


async def request_token(client: Client, namespace: str, name: str, **spec: object) -> str:
    """A token of an existing ServiceAccount."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = SERVICE_ACCOUNTS.path(namespace, name, "token")
    answer = await client.raw("POST", path, json.dumps(request).encode())
    return str(json.loads(answer.body)["status"]["token"])
