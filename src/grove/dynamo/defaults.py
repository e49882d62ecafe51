"""What is filled in for a DynamoGraphDeployment: which backend runs it, and counts that were left out."""

from __future__ import annotations

from typing import Any

from grove.dynamo import keys
from grove.dynamo.surroundings import provider

Body = dict[str, Any]


def default_graph(body: Body, *, creating: bool) -> Body:
    """The raw object with everything filled in; the same object if nothing was missing. What is of the wrong
    shape is left as it is. Never raises."""
    if not isinstance(body, dict):
        return body
    metadata = body.get("metadata")
    if creating and isinstance(metadata, dict):
        body = {**body, "metadata": _stamped(metadata)}
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return body
    annotations = body.get("metadata", {}).get("annotations") if isinstance(metadata, dict) else None
    wanted = {"replicas": 1}
    if provider(annotations if isinstance(annotations, dict) else {}) == keys.GROVE:
        wanted["minAvailable"] = 1
    filled = _components(spec, wanted)
    return body if filled is spec else {**body, "spec": filled}


def _stamped(metadata: Body) -> Body:
    """The backend is decided here, whatever the user wrote, and for good."""
    annotations = metadata.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    asked = {key: value for key, value in annotations.items() if key != keys.PROVIDER}
    stamped = {keys.ORIGIN_VERSION: keys.ORIGIN, **asked, keys.PROVIDER: provider(_texts(asked))}
    return {**metadata, "annotations": stamped}


def _texts(values: Body) -> dict[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}


def _components(spec: Body, wanted: Body) -> Body:
    listed, named = spec.get("components"), spec.get("services")
    if isinstance(listed, list):
        filled = [_filled(each, wanted) for each in listed]
        if any(new is not old for new, old in zip(filled, listed, strict=True)):
            spec = {**spec, "components": filled}
    if isinstance(named, dict):
        services = {name: _filled(each, wanted) for name, each in named.items()}
        if any(services[name] is not each for name, each in named.items()):
            spec = {**spec, "services": services}
    return spec


def _filled(component: Any, wanted: Body) -> Any:
    if not isinstance(component, dict):
        return component
    missing = {key: value for key, value in wanted.items() if component.get(key) is None}
    return {**component, **missing} if missing else component
