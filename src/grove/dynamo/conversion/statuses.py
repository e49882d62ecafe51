"""The status of a DynamoGraphDeployment in both versions: its components are `services` in v1alpha1, where
each also has the deprecated `componentName`."""

from __future__ import annotations

from typing import Any

from grove.dynamo.conversion.preservation import Body, Convert, lost, restored, same
from grove.dynamo.conversion.specs import COMPONENTS, SERVICES


def to_beta(status: Body, preserved: Body | None = None) -> tuple[Body, Body]:
    """The status in v1beta1, and what to preserve of v1alpha1. `preserved`: of v1beta1."""
    return _converted(status, preserved or {}, (SERVICES, _beta_entry), (COMPONENTS, _alpha_entry))


def to_alpha(status: Body, preserved: Body | None = None) -> tuple[Body, Body]:
    """The status in v1alpha1, and what to preserve of v1beta1. `preserved`: of v1alpha1."""
    return _converted(status, preserved or {}, (COMPONENTS, _alpha_entry), (SERVICES, _beta_entry))


Direction = tuple[str, Convert]
"""The field with the components, and how one of them is converted."""


def _converted(status: Body, preserved: Body, forward: Direction, back: Direction) -> tuple[Body, Body]:
    found = _renamed(status, preserved, forward, back)
    plain = _renamed(found, {}, back, forward)
    left = lost(status, plain)
    if isinstance(entries := left.get(forward[0]), dict) and isinstance(plain.get(forward[0]), dict):
        left[forward[0]] = lost(entries, plain[forward[0]])
    return found, left if same(_renamed(found, left, back, forward), status) else status


def _renamed(status: Body, preserved: Body, forward: Direction, back: Direction) -> Body:
    (source, convert), (target, reverse) = forward, back
    found = {key: value for key, value in preserved.items() if key != target}
    found |= {key: value for key, value in status.items() if key not in (source, target)}
    kept = preserved.get(target)
    entries = status.get(source)
    if not isinstance(entries, dict):
        return found if target not in preserved or isinstance(kept, dict) else {**found, target: kept}
    known: Any = kept if isinstance(kept, dict) else {}
    converted = {name: value for name, value in known.items() if not isinstance(value, dict)}
    for name, entry in entries.items():
        if isinstance(entry, dict):
            written = known.get(name)
            converted[name] = restored(entry, written if isinstance(written, dict) else {}, convert, reverse)
    return {**found, target: converted}


def _beta_entry(entry: Body) -> Body:
    found = {key: value for key, value in entry.items() if key != "componentName"}
    name = entry.get("componentName")
    if name and isinstance(name, str) and not entry.get("componentNames"):
        found["componentNames"] = [name]
    return found


def _alpha_entry(entry: Body) -> Body:
    found = {key: value for key, value in entry.items() if key != "componentName"}
    names = entry.get("componentNames")
    if names and isinstance(names, list):
        found["componentName"] = names[-1]
    return found
