"""Defaulting of a DynamoGraphDeployment: records its backend, and fills in replicas and minAvailable."""

from __future__ import annotations

from typing import Any

from grove.dynamo import keys
from grove.dynamo.context import provider

Body = dict[str, Any]


def default_graph(body: Body, *, creating: bool, old: Body | None = None) -> Body:
    """The raw object with defaults; the same object if nothing was missing. Values of the wrong type are kept
    for validation to reject. Replicas that a scaling adapter decides are taken from `old`. Never raises."""
    if not isinstance(body, dict):
        return body
    metadata = body.get("metadata")
    if creating and isinstance(metadata, dict):
        body = {**body, "metadata": _with_provider(metadata)}
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return body
    annotations = body.get("metadata", {}).get("annotations") if isinstance(metadata, dict) else None
    wanted = {"replicas": 1}
    if provider(annotations if isinstance(annotations, dict) else {}) == keys.GROVE:
        wanted["minAvailable"] = 1
    stored = old.get("spec") if isinstance(old, dict) else None
    filled = _components(spec, wanted, _counts(stored if isinstance(stored, dict) else {}))
    return body if filled is spec else {**body, "spec": filled}


def _with_provider(metadata: Body) -> Body:
    """Record the backend on creation; overwrites a value of the user, and is immutable afterwards."""
    annotations = metadata.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    given = {key: value for key, value in annotations.items() if key != keys.PROVIDER}
    stamped = {keys.ORIGIN_VERSION: keys.ORIGIN, **given, keys.PROVIDER: provider(_texts(given))}
    return {**metadata, "annotations": stamped}


def _texts(values: Body) -> dict[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}


def _counts(spec: Body) -> dict[str, Any]:
    """The replicas of the components with a scaling adapter, by name."""
    listed, named = spec.get("components"), spec.get("services")
    found = [(_name(each), each) for each in listed] if isinstance(listed, list) else []
    found += list(named.items()) if isinstance(named, dict) else []
    return {name: each["replicas"] for name, each in found if name and _has_scaling_adapter(each)}


def _has_scaling_adapter(component: Any) -> bool:
    if not isinstance(component, dict) or component.get("replicas") is None:
        return False
    adapter = component.get("scalingAdapter")
    return isinstance(adapter, dict) and adapter.get("enabled", True) is True


def _name(component: Any) -> str:
    name = component.get("name") if isinstance(component, dict) else None
    return name if isinstance(name, str) else ""


def _components(spec: Body, wanted: Body, counts: dict[str, Any]) -> Body:
    def filled(name: str, component: Any) -> Any:
        return _filled(component, {**wanted, "replicas": counts.get(name, wanted["replicas"])})

    listed, named = spec.get("components"), spec.get("services")
    if isinstance(listed, list):
        components = [filled(_name(each), each) for each in listed]
        if any(new is not old for new, old in zip(components, listed, strict=True)):
            spec = {**spec, "components": components}
    if isinstance(named, dict):
        services = {name: filled(name, each) for name, each in named.items()}
        if any(services[name] is not each for name, each in named.items()):
            spec = {**spec, "services": services}
    return spec


def _filled(component: Any, wanted: Body) -> Any:
    if not isinstance(component, dict):
        return component
    missing = {key: value for key, value in wanted.items() if component.get(key) is None}
    return {**component, **missing} if missing else component
