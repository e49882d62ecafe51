"""Installs on a local cluster what the chart installs besides the operator's pods: its namespace, its
ServiceAccount with the chart's rights, and the webhook configurations. The operator is a process on this
machine, so the webhooks have a URL instead of a Service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from grove.kube.client.client import APPLY, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from grove.kube.errors import NotFound
from grove.local.private_files import write_private
from grove.webhooks import registrations

NAMESPACE = "grove-system"
ACCOUNT = registrations.SERVICE
RIGHTS = Path(__file__).with_name("operator_rights.yaml")
_FIELD_MANAGER = "grove-up"
_TOKEN_SECONDS = 365 * 24 * 3600
_RESOURCES = {
    each.kind: each
    for each in (
        NAMESPACES,
        SERVICE_ACCOUNTS,
        CLUSTER_ROLES,
        CLUSTER_ROLE_BINDINGS,
        ROLES,
        ROLE_BINDINGS,
        *(each.resource for each in registrations.served(authorizer=False)),
    )
}

Body = dict[str, Any]


async def install(client: Client, webhooks_url: str) -> None:
    """Create the objects, or update them. The operator itself adds the CA to the webhook configurations."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    rights = yaml.load_all(RIGHTS.read_text(encoding="utf-8"), yaml.CSafeLoader)
    for each in (namespace, *rights, *webhooks(webhooks_url)):
        await _apply(client, each)


async def uninstall_webhooks(client: Client) -> None:
    """Delete the webhook configurations: without an operator they refuse every write."""
    for each in registrations.served(authorizer=False):
        try:
            await client.delete(each.resource, each.name, as_type=Object)
        except NotFound:
            continue


def webhooks(url: str) -> list[Body]:
    """The webhook configurations of an operator at this URL."""
    operator = registrations.account(NAMESPACE, ACCOUNT)
    return registrations.configurations(registrations.UrlAddress(url), operator=operator)


async def write_kubeconfig(client: Client, server: str, ca: Path, path: Path) -> None:
    """Write a kubeconfig with a new token of the operator's ServiceAccount."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    place = SERVICE_ACCOUNTS.path(NAMESPACE, ACCOUNT, "token")
    answer = await client.raw("POST", place, json.dumps(request).encode())
    token = json.loads(answer.body)["status"]["token"]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "grove",
        "clusters": [{"name": "grove", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": "grove", "context": {"cluster": "grove", "user": ACCOUNT}}],
    }
    write_private(path, json.dumps(content, indent=2).encode())


async def _apply(client: Client, body: Body) -> None:
    resource: Resource = _RESOURCES[body["kind"]]
    metadata = body["metadata"]
    await client.patch(
        resource,
        metadata["name"],
        body,
        namespace=metadata.get("namespace"),
        kind=APPLY,
        field_manager=_FIELD_MANAGER,
        force=True,
        as_type=Object,
    )
