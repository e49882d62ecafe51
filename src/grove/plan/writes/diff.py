"""The difference between what is and what should be, as a JSON merge patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct


def merge_patch(current: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """What turns `current` into `desired`: changed keys, null for those that go, lists as a whole."""
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
    """The same for two statuses. Nearly always there is no difference, and that is found out first.

    A field that must not be missing is always in it: read from an object that has no status yet, its default
    looks as if the server had it.
    """
    if current == desired:
        return {}
    wanted = msgspec.to_builtins(desired)
    required = {key: wanted[key] for key in msgspec.to_builtins(type(desired)())}
    return required | merge_patch(msgspec.to_builtins(current), wanted)
