"""Computes the JSON patch from one document to another, for mutating webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def diff(before: Any, after: Any, path: str = "") -> Iterator[Operation]:
    """The operations that turn `before` into `after`. Lists of another length are replaced as a whole."""
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_mappings(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from diff(old, new, f"{path}/{index}")
    elif type(before) is not type(after) or before != after:  # in JSON, true is not 1
        yield {"op": "replace", "path": path, "value": after}


def _diff_mappings(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Operation]:
    for key, old in before.items():
        child = f"{path}/{_escaped(key)}"
        if key in after:
            yield from diff(old, after[key], child)
        else:
            yield {"op": "remove", "path": child}
    for key, new in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": new}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
