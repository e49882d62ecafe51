"""Normalizes pod specs: equal specs that are written differently, by users or by Go clients, become the same.

    nvidia.com/gpu: 8                    "8"             a quantity is a string
    memory: 1024Mi                       1Gi             in its shortest form
                                         resources: {}   every container has the field
                                         divisor: "0"    every resourceFieldRef has the field
    args: [], value: "", nodeSelector: {}                equal to an absent field: omitted

A controller that only adds an annotation to a set rewrites it in its own form. That must not start a rollout,
nor must the form of the pod specs that upstream's operator wrote.
"""

from __future__ import annotations

from typing import Any

from grove.api.formats import quantities

_USER_KEYED_MAPS = frozenset(
    {"nodeSelector", "matchLabels", "labels", "annotations", "volumeAttributes", "options"}
)
"""Maps with keys of the user's choice: their content is not interpreted."""
_QUANTITY_MAPS = frozenset({"requests", "limits", "overhead"})
_QUANTITY_FIELDS = frozenset({"sizeLimit", "divisor"})
_DEFAULTS: dict[str, object] = {
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
    "readOnly": False,
    "value": "",
    "workingDir": "",
    "initialDelaySeconds": 0,
    "hostPort": 0,
    "divisor": "0",
    "resources": {},
    "metadata": {},
    **{key: {} for key in _USER_KEYED_MAPS | _QUANTITY_MAPS},
}
"""Values that are equal to the absence of the field. That is not so for every field that is false."""


def canonical(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the same for all forms of one pod spec."""
    found = {}
    for key, value in spec.items():  # a comprehension would be one more frame for each level of nesting
        read = _canonical_value(key, value)
        if not _is_default(key, read):
            found[key] = read
    return found


def _is_default(key: str, value: Any) -> bool:
    return value is None or value == [] or (key in _DEFAULTS and value == _DEFAULTS[key])


def _canonical_value(key: str, value: Any) -> Any:
    if key in _USER_KEYED_MAPS:
        return value
    if key in _QUANTITY_FIELDS:
        return _quantity(value)
    if isinstance(value, list):
        return [canonical(each) if isinstance(each, dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    return (
        {name: _quantity(each) for name, each in value.items()} if key in _QUANTITY_MAPS else canonical(value)
    )


def _quantity(written: Any) -> Any:
    try:
        return str(quantities.parse(written))
    except ValueError:
        return written
