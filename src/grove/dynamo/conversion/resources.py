"""Resources of the main container: by name in v1beta1, with words for the common ones in v1alpha1."""

from __future__ import annotations

from typing import Any

from grove.api.naming.external_keys import NVIDIA_GPU
from grove.dynamo.graph import Body

_COMMON = {"cpu": "cpu", "memory": "memory", NVIDIA_GPU: "gpu"}
_AMOUNTS = ("requests", "limits")


def to_beta(written: Any) -> Body:
    """The resources of a service as those of a container; what is empty is left out."""
    if not isinstance(written, dict):
        return {}
    found: Body = {key: _amounts_to_beta(written.get(key)) for key in _AMOUNTS}
    found["claims"] = written.get("claims")
    return {key: value for key, value in found.items() if value}


def _amounts_to_beta(written: Any) -> Body:
    if not isinstance(written, dict):
        return {}
    kind = written.get("gpuType")
    gpu = kind if kind and isinstance(kind, str) else NVIDIA_GPU
    custom = written.get("custom")
    named = {"cpu": written.get("cpu"), "memory": written.get("memory"), gpu: written.get("gpu")}
    named |= custom if isinstance(custom, dict) else {}
    return {name: amount for name, amount in named.items() if amount is not None}


def to_alpha(written: Body) -> Body:
    """The resources of a container as those of a service."""
    found = {key: _amounts_to_alpha(value) for key in _AMOUNTS if isinstance(value := written.get(key), dict)}
    return found | {key: value for key, value in written.items() if key not in found}


def _amounts_to_alpha(written: Body) -> Body:
    found = {word: written[name] for name, word in _COMMON.items() if name in written}
    custom = {name: amount for name, amount in written.items() if name not in _COMMON}
    return found | ({"custom": custom} if custom else {})
