"""One pod spec and its spellings: what users write, and what Go programs write back that have read it.

    nvidia.com/gpu: 8                    "8"             a quantity is a string
    memory: 1024Mi                       1Gi             and as short as can be
                                         resources: {}   every container has some
                                         divisor: "0"    and every resourceFieldRef one
    args: [], value: "", nodeSelector: {}                what is as good as left out is left out

A controller that only puts an annotation on a set spells it anew. Nothing may be rolled because of that, nor
because the pod specs that upstream's operator made are spelled so.
"""

from __future__ import annotations

from typing import Any

from grove.api.formats import quantities

_USER_KEYED_MAPS = frozenset(
    {"nodeSelector", "matchLabels", "labels", "annotations", "volumeAttributes", "options"}
)
"""Maps whose keys are the user's: what they hold is not ours to read."""
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
"""What these say is what their absence says. It is not so of every field that is false."""


def canonical(spec: dict[str, Any]) -> dict[str, Any]:
    """The same for all spellings of one pod spec."""
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
