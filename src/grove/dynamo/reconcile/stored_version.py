"""Stores graphs of earlier releases in v1beta1: they stored manifests of v1alpha1 as they were."""

from __future__ import annotations

from typing import Any

from grove.api.intents import Patch, PatchType
from grove.dynamo.api.common import ALPHA, BETA
from grove.dynamo.conversion.objects import PRESERVED, converted, is_written_as
from grove.dynamo.snapshot import StoredGraph
from grove.plan.writes import builders


def rewrite(stored: StoredGraph) -> Patch | None:
    """The patch that rewrites the spec in v1beta1; None if it is, or if too much of it cannot be expressed in
    v1beta1. What is rendered from it stays the same."""
    meta = stored.metadata
    body: dict[str, Any] = {"metadata": {"annotations": dict(meta.annotations)}, "spec": stored.spec}
    if is_written_as(body, BETA):
        return None
    found = converted(body, BETA)
    if not is_written_as(found, BETA):
        return None
    annotations = found["metadata"]["annotations"]
    operations = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "replace", "path": "/spec", "value": found["spec"]},
    ]
    if meta.annotations:
        pointer = f"/metadata/annotations/{PRESERVED[ALPHA].replace('/', '~1')}"
        operations.append({"op": "add", "path": pointer, "value": annotations[PRESERVED[ALPHA]]})
    else:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return Patch(builders.target(stored), operations, type=PatchType.JSON)
