"""Writes the extract of Kubernetes' OpenAPI documents that our CRDs embed, for `grove.api.crds.openapi`.

    python -m tools.kubernetes_openapi

reads the documents of all supported versions from Kubernetes' Go modules, which `go` downloads. Then run
`make fix`, and review what has changed in the CRDs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

import grove.api
from grove.api.crds.openapi import SPECIAL, Extract
from grove.kube.client.client import Client
from grove.local.build.versions import KUBERNETES
from tools.openapi_union import united

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
    """The extract from a running API server, for comparison."""
    version = msgspec.json.decode((await client.raw("GET", "/version")).body)["gitVersion"]
    replies = [await client.raw("GET", f"/openapi/v3/{document}") for document in DOCUMENTS]
    return make_extract(version, [msgspec.json.decode(reply.body) for reply in replies])


def from_go_module(release: str) -> Extract:
    """The extract from the Go module of a release, which contains what its API server serves."""
    command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{release}"]
    folder = msgspec.json.decode(subprocess.check_output(command))["Dir"]
    files = [f"{document.replace('/', '__')}_openapi.json" for document in DOCUMENTS]
    texts = [Path(folder, "api", "openapi-spec", "v3", file).read_bytes() for file in files]
    return make_extract(f"v{release}", [msgspec.json.decode(text) for text in texts])


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
    return Extract((version,), dict(sorted(definitions.items())))


def render(extract: Extract) -> str:
    """The extract as JSON, one definition per line: diffs between Kubernetes versions are readable."""
    lines = (f"{_json(name)}:{_json(schema)}" for name, schema in extract.definitions.items())
    return f'{{"versions":{_json(extract.versions)},"definitions":{{\n' + ",\n".join(lines) + "\n}}\n"


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


if __name__ == "__main__":
    extract = united([from_go_module(release) for release in KUBERNETES.values()])
    Path(*grove.api.__path__, "kubernetes.json").write_text(render(extract))
