"""Schemas of Kubernetes' own types, for the CRDs that embed them.

`kubernetes.json` is an extract of the OpenAPI documents that API servers of all supported versions serve,
written by `python -m tools.kubernetes_openapi`: generating CRDs needs no API server and gives the same result
everywhere.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

Schema = dict[str, Any]

_NUMBER = r"(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY = rf"^{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE]{_NUMBER}))?$"
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_INT_OR_STRING: Schema = {"anyOf": _INTEGER_OR_STRING, "x-kubernetes-int-or-string": True}
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

SPECIAL: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**_INT_OR_STRING, "pattern": _QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _INT_OR_STRING,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    },
    # Inside a template only these two fields are legal.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {"labels": _STRINGS, "annotations": _STRINGS},
    },
}
"""Types that JSON Schema cannot express, or that a CRD expresses differently."""

_NOT_UPSTREAM = {("io.k8s.api.core.v1.AzureDiskVolumeSource", name) for name in ("cachingMode", "kind")}
"""Defaults of the API server that upstream's CRDs lack. A default changes stored objects and their hashes."""


class Extract(msgspec.Struct, frozen=True):
    """The definitions that our CRDs embed, from one or several versions of Kubernetes."""

    versions: tuple[str, ...]
    definitions: dict[str, Schema]


@cache
def extract() -> Extract:
    """The extract in this package."""
    return msgspec.json.decode(files("grove.api").joinpath("kubernetes.json").read_bytes(), type=Extract)


@cache
def embedded(definition: str) -> Schema:
    """A definition as a structural schema, references inlined. Shared: callers must not change it."""
    if definition in SPECIAL:
        return SPECIAL[definition]
    schema = extract().definitions[definition]
    required = schema.get("required", ())
    structural = _inlined(schema)
    for name, field in schema.get("properties", {}).items():
        default = field.get("default")
        if default not in (None, {}) and name not in required and (definition, name) not in _NOT_UPSTREAM:
            structural["properties"][name] = structural["properties"][name] | {"default": default}
    return structural


def _inlined(schema: Schema) -> Schema:
    if "$ref" in schema:
        return embedded(schema["$ref"])
    structural = {word: value for word, value in schema.items() if word != "default"}
    if "properties" in schema:
        structural["properties"] = {name: _inlined(field) for name, field in schema["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in schema:
            structural[word] = _inlined(schema[word])
    return structural
