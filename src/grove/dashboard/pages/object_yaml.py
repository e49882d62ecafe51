"""An object as YAML, as the API server has it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import yaml

from grove import timing
from grove.api.naming import labels
from grove.dashboard.board import Board
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.names import check_names, known_kind, missing, quoted
from grove.dashboard.rights import Rights
from grove.explanation.model import ObjectRef
from grove.explanation.reading import RESOURCES
from grove.kube.client.resource import PODS, Resource
from grove.kube.errors import Forbidden, KubeError, NotFound

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def object_yaml(board: Board, rights: Rights, namespace: str, kind: str, name: str) -> str:
    """The object without what only programs read. Raises PageError."""
    resource = RESOURCES.get(known_kind(kind) or "")
    if resource is None:
        known = ", ".join(map(str.lower, RESOURCES))
        raise PageError(HTTPStatus.BAD_REQUEST, f"unknown kind {quoted(kind)}: use one of {known}")
    check_names(namespace=namespace, name=name)
    about = ObjectRef(resource.kind, name, namespace)
    if not rights.sees(namespace):
        raise missing(about)
    body = await _read(board, resource, about)
    return await asyncio.to_thread(_text, _readable(body), about)


async def _read(board: Board, resource: Resource, about: ObjectRef) -> dict[str, Any]:
    try:
        body = await board.read(resource, about.namespace, about.name)
    except (NotFound, Forbidden):
        raise missing(about) from None
    except KubeError as problem:
        raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, f"{about} cannot be read: {problem}") from None
    if resource == PODS and not _is_ours(body):
        raise missing(about)
    return body


def _is_ours(pod: dict[str, Any]) -> bool:
    carried = (pod.get("metadata") or {}).get("labels") or {}
    return carried.get(labels.MANAGED_BY) == labels.OPERATOR and bool(carried.get(labels.PART_OF))


def _readable(body: dict[str, Any]) -> dict[str, Any]:
    metadata = dict(body.get("metadata") or {})
    metadata.pop("managedFields", None)
    annotations = {
        key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key != _APPLIED
    }
    if annotations:
        metadata["annotations"] = annotations
    return {**body, "metadata": metadata}


def _text(body: dict[str, Any], about: ObjectRef) -> str:
    """Runs in a thread: the largest objects take a second."""
    text: str = yaml.dump(body, Dumper=yaml.CSafeDumper, sort_keys=False, width=110, allow_unicode=True)
    if len(text) <= timing.LONGEST_YAML:
        return text
    cut = text[: text.rfind("\n", 0, timing.LONGEST_YAML) + 1]
    command = f"kubectl get {about.kind.lower()} {about.name} -n {about.namespace} -o yaml"
    return f"{cut}# {len(text) - len(cut)} more characters: {command}\n"
