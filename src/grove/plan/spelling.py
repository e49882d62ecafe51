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

from grove.api import quantities

_OWN_KEYS = frozenset({"nodeSelector", "matchLabels", "labels", "annotations", "volumeAttributes", "options"})
"""Maps whose keys are the user's: what they hold is not ours to read."""
_AMOUNTS = frozenset({"requests", "limits", "overhead"})
_AMOUNT = frozenset({"sizeLimit", "divisor"})
_NOTHING: dict[str, object] = {
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
    **{key: {} for key in _OWN_KEYS | _AMOUNTS},
}
"""What these say is what their absence says. It is not so of every field that is false."""


def canonical(spec: dict[str, Any]) -> dict[str, Any]:
    """The same for all spellings of one pod spec."""
    found = {}
    for key, value in spec.items():  # a comprehension would be one more frame for each level of nesting
        read = _read(key, value)
        if not _as_good_as_left_out(key, read):
            found[key] = read
    return found


def _as_good_as_left_out(key: str, value: Any) -> bool:
    return value is None or value == [] or (key in _NOTHING and value == _NOTHING[key])


def _read(key: str, value: Any) -> Any:
    if key in _OWN_KEYS:
        return value
    if key in _AMOUNT:
        return _amount(value)
    if isinstance(value, list):
        return [canonical(each) if isinstance(each, dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _amount(each) for name, each in value.items()} if key in _AMOUNTS else canonical(value)


def _amount(written: Any) -> Any:
    try:
        return str(quantities.parse(written))
    except ValueError:
        return written
