"""Computes JSON merge patches (RFC 7386) from the current to the desired state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct


def merge_patch(current: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """The patch from `current` to `desired`: changed keys, null for removed ones, lists as a whole."""
    if current == desired:
        return {}
    patch: dict[str, Any] = {}
    for key, wanted in desired.items():
        present = current.get(key)
        if isinstance(wanted, dict) and isinstance(present, dict):
            if inner := merge_patch(present, wanted):
                patch[key] = inner
        elif present != wanted:
            patch[key] = wanted
    for key in current:
        if key not in desired:
            patch[key] = None
    return patch


def status_patch(current: Struct, desired: Struct) -> dict[str, Any]:
    """The patch between two statuses; equal statuses, the usual case, are detected first.

    Required fields are always included: read from an object without a status, their default looks as if the
    server had it.
    """
    if current == desired:
        return {}
    wanted = msgspec.to_builtins(desired)
    required = {key: wanted[key] for key in msgspec.to_builtins(type(desired)())}
    return required | merge_patch(msgspec.to_builtins(current), wanted)
