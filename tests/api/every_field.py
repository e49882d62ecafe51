"""A value with every field that an OpenAPI definition of Kubernetes has."""

from __future__ import annotations

from typing import Any

from grove.api.crds.openapi import Extract, Schema

POD_SPEC = "io.k8s.api.core.v1.PodSpec"
METRIC = "io.k8s.api.autoscaling.v2.MetricSpec"
CLAIM_TEMPLATE = "io.k8s.api.resource.v1.ResourceClaimTemplateSpec"

_SCALARS = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "1500m",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 80,
    f"{_META}.Time": "2026-08-01T00:00:00Z",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"any": {"thing": 1}},
    f"{_META}.ObjectMeta": {"labels": {"key": "text"}, "annotations": {"key": "text"}},
}


def every_field(extract: Extract, definition: str) -> Any:
    """The value. It satisfies the schema; which fields exclude each other is not considered."""
    if definition in _SPECIAL:
        return _SPECIAL[definition]
    return _value(extract, extract.definitions[definition])


def _value(extract: Extract, schema: Schema) -> Any:
    if "$ref" in schema:
        return every_field(extract, schema["$ref"])
    if schema["type"] == "array":
        return [_value(extract, schema["items"])]
    if schema["type"] == "object":
        fields = {name: _value(extract, field) for name, field in schema.get("properties", {}).items()}
        free = (
            {"key": _value(extract, schema["additionalProperties"])}
            if "additionalProperties" in schema
            else {}
        )
        return fields | free
    return _SCALARS[schema["type"]]
