"""Builders for sets whose cliques require fabric domains."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.registry import Providers, providers
from tests.fabrics.example_vendor import Example

GPU = "nvidia.com/gpu"
BOTH: Providers = providers(("nvidia", "example"), {"example": Example})


def container(name: str = "main", **limits: object) -> dict[str, Any]:
    """A container; `gpus=8` requests 8 GPUs."""
    found: dict[str, Any] = {"name": name, "image": "model:1"}
    if "gpus" in limits:
        found["resources"] = {"limits": {GPU: limits["gpus"]}}
    return found


def clique(name: str, *containers: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """A clique; `computedomain="x"` and `scope="replica"` annotate it."""
    keys = {
        "computedomain": "nvidia.com/computedomain",
        "scope": "nvidia.com/computedomain-scope",
        "group": "grove.io/mnnvl-group",
        "fabric": "example.com/fabric",
    }
    spec = {"replicas": 1, "podSpec": {"containers": list(containers) or [container(gpus="8")]}}
    return {
        "name": name,
        "annotations": {keys[key]: value for key, value in annotations.items()},
        "spec": spec,
    }


def a_set(
    *cliques: dict[str, Any], name: str = "inference", groups: Any = (), **annotations: str
) -> PodCliqueSet:
    """A set; `auto="enabled"` and `group="x"` annotate it."""
    keys = {"auto": "grove.io/auto-mnnvl", "group": "grove.io/mnnvl-group"}
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "annotations": {keys[key]: value for key, value in annotations.items()},
        },
        "spec": {
            "replicas": 2,
            "template": {"cliques": list(cliques), "podCliqueScalingGroups": list(groups)},
        },
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=PodCliqueSet)
