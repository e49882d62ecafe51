"""Builders for small objects of our kinds, and functions that send them to the API server."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from grove.api.types.registry import KINDS
from grove.kube.client.client import Client
from grove.kube.client.resource import RESOURCE_CLAIM_TEMPLATES, Resource
from grove.kube.errors import Invalid

RESOURCES = {
    kind.KIND.name: Resource(
        kind.KIND.group, kind.KIND.version, kind.KIND.plural, kind.KIND.name, kind.KIND.namespaced
    )
    for kind in KINDS
} | {"ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES}

POD_SPEC = {"containers": [{"name": "main", "image": "model:1"}]}


def clique_template(name: str = "worker", **fields: Any) -> dict[str, Any]:
    return {"name": name, "spec": {"podSpec": POD_SPEC}, **fields}


def pod_clique_set(name: str = "inference", **template: Any) -> dict[str, Any]:
    template = {"cliques": [clique_template()], **template}
    return _object("PodCliqueSet", name, {"replicas": 1, "template": template})


def pod_clique(name: str = "clique", **spec: Any) -> dict[str, Any]:
    return _object("PodClique", name, {"podSpec": POD_SPEC, **spec})


def group(name: str = "group", **spec: Any) -> dict[str, Any]:
    return _object("PodCliqueScalingGroup", name, {"cliqueNames": ["worker"], **spec})


def topology(kind: str, *levels: tuple[str, str]) -> dict[str, Any]:
    spec = {"levels": [{"domain": domain, "key": key} for domain, key in levels]}
    return _object(kind, "levels", spec)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    resource = RESOURCES[kind]
    return {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def create(client: Client, body: dict[str, Any], namespace: str, **options: Any) -> dict[str, Any]:
    """Creates an object as `kubectl create` does."""
    resource = RESOURCES[body["kind"]]
    place = namespace if resource.namespaced else None
    return await client.create(resource, body, namespace=place, as_type=dict, **options)


async def create_strictly(client: Client, body: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A dry-run create in which an unknown field is an error."""
    resource = RESOURCES[body["kind"]]
    path = resource.path(namespace if resource.namespaced else None)
    reply = await client.raw("POST", f"{path}?dryRun=All&fieldValidation=Strict", msgspec.json.encode(body))
    return msgspec.json.decode(reply.body)


async def refusal(client: Client, body: dict[str, Any], namespace: str) -> str:
    """The error with which the API server rejects an object; empty if it accepts it."""
    try:
        await create(client, body, namespace, dry_run=True)
    except Invalid as error:
        return str(error)
    return ""


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
