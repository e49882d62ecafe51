"""The extract of Kubernetes' OpenAPI documents: which definitions and keywords it has, and how it is
written."""

from __future__ import annotations

import msgspec
import pytest
from tools.kubernetes_openapi import make_extract, render

from grove.api.crds import openapi
from grove.api.crds.openapi import Extract
from grove.local.build.versions import KUBERNETES
from tools import kubernetes_openapi


def test_extract_covers_every_supported_version():
    assert openapi.extract().versions == tuple(f"v{release}" for release in KUBERNETES.values())


def test_rendered_extract_is_read_back_unchanged():
    text = render(openapi.extract())
    assert msgspec.json.decode(text, type=Extract) == openapi.extract()


@pytest.mark.parametrize("field", ["workloadRef", "schedulingGroup", "evictionResponders"])
def test_pod_fields_of_every_version_are_in_extract(field):
    """In 1.35 only, since 1.36, since 1.37."""
    assert field in openapi.extract().definitions["io.k8s.api.core.v1.PodSpec"]["properties"]


def test_definitions_below_roots_are_taken_and_trimmed(monkeypatch):
    monkeypatch.setattr(kubernetes_openapi, "ROOTS", ("Pod",))
    reference = {"$ref": "#/components/schemas/Part"}
    schemas = {
        "Pod": {
            "type": "object",
            "description": "long",
            "properties": {"part": {"allOf": [reference], "default": {}}, "parts": {"items": reference}},
        },
        "Part": {"type": "string", "x-kubernetes-patch-strategy": "merge"},
        "Other": {"type": "string"},
    }
    assert make_extract("v1", [{"components": {"schemas": schemas}}]) == Extract(
        ("v1",),
        {
            "Part": {"type": "string"},
            "Pod": {
                "type": "object",
                "properties": {"part": {"$ref": "Part"}, "parts": {"items": {"$ref": "Part"}}},
            },
        },
    )
