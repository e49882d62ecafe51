"""Writes the extract of Kubernetes' OpenAPI document that our CRDs embed, for `grove.api.crds.openapi`.

    python -m tools.kubernetes_openapi --kubeconfig PATH

writes it from a running API server. Then run `make fix`, and review what has changed in the CRDs.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

import grove.api
from grove.api.crds.openapi import SPECIAL, Extract
from grove.kube.auth import config
from grove.kube.client.client import Client

DOCUMENTS = ("api/v1", "apis/autoscaling/v2", "apis/resource.k8s.io/v1")
"""Paths below `/openapi/v3/`."""
ROOTS = (
    "io.k8s.api.core.v1.PodSpec",
    "io.k8s.api.autoscaling.v2.MetricSpec",
    "io.k8s.api.resource.v1.ResourceClaimTemplateSpec",
)
_KEPT = {
    "type",
    "format",
    "required",
    "default",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
}
"""Keywords that are kept. Descriptions are four fifths of the document; CRDs cannot have patch strategies
and unions."""


async def fetch(client: Client) -> Extract:
    """The extract from a running API server."""
    version = msgspec.json.decode((await client.raw("GET", "/version")).body)["gitVersion"]
    replies = [await client.raw("GET", f"/openapi/v3/{document}") for document in DOCUMENTS]
    return make_extract(version, [msgspec.json.decode(reply.body) for reply in replies])


def make_extract(version: str, documents: list[Mapping[str, Any]]) -> Extract:
    """The definitions below ROOTS, trimmed."""
    served = {name: schema for doc in documents for name, schema in doc["components"]["schemas"].items()}
    definitions: dict[str, Any] = {}
    wanted = list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name not in definitions and name not in SPECIAL:
            definitions[name] = _trimmed(served[name])
            wanted.extend(_references(definitions[name]))
    return Extract(version, dict(sorted(definitions.items())))


def render(extract: Extract) -> str:
    """The extract as JSON, one definition per line: diffs between Kubernetes versions are readable."""
    lines = (f"{_json(name)}:{_json(schema)}" for name, schema in extract.definitions.items())
    return f'{{"version":{_json(extract.version)},"definitions":{{\n' + ",\n".join(lines) + "\n}}\n"


def _trimmed(schema: Mapping[str, Any]) -> dict[str, Any]:
    (reference,) = schema.get("allOf", [schema])
    if "$ref" in reference:
        default = {"default": schema["default"]} if schema.get("default") else {}
        return {"$ref": reference["$ref"].rpartition("/")[2], **default}
    kept = {word: value for word, value in schema.items() if word in _KEPT}
    if "properties" in schema:
        kept["properties"] = {name: _trimmed(field) for name, field in schema["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in schema:
            kept[word] = _trimmed(schema[word])
    return kept


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


async def _from(kubeconfig: Path | None) -> Extract:
    async with Client(config.load(kubeconfig)) as client:
        return await fetch(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path)
    extract = asyncio.run(_from(parser.parse_args().kubeconfig))
    Path(*grove.api.__path__, "kubernetes.json").write_text(render(extract))
