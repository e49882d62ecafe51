"""Merges `extraPodSpec.mainContainer` of v1alpha1 over the container that the fields of its service describe.

As in Dynamo, objects are merged key by key, other values replace, and an empty value replaces nothing. One
case differs: a probe has a single handler, so the handler of the override replaces another one, where Dynamo
renders both and the API server refuses the pod."""

from __future__ import annotations

from typing import Any

from grove.dynamo.graph import Body

_AMOUNTS = ("limits", "requests")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")


def merged(own: Body, override: Body) -> Body:
    """The object with the fields of the override that are not empty. A field that only the override has is
    kept even if it is empty."""
    has_handler = any(override.get(name) for name in _HANDLERS)
    found = {
        key: value
        for key, value in own.items()
        if not has_handler or key not in _HANDLERS or override.get(key)
    }
    for key, value in override.items():
        found[key] = _merged_field(key, found[key], value) if key in found else value
    return found


def _merged_field(key: str, own: Any, override: Any) -> Any:
    if isinstance(own, dict) and isinstance(override, dict):
        # An amount of 0 is a value.
        return own | override if key in _AMOUNTS else merged(own, override)
    return override or own
