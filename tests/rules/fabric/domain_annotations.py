"""Annotations of fabric domains, and sets with them, that the tables of this package share."""

from __future__ import annotations

import msgspec

from grove.api.configuration.types import Network
from tests.rules.builders import FACTS
from tests.rules.messages import C, T

KEY = "grove.io/auto-mnnvl"
NAME = "nvidia.com/computedomain"
SCOPE = "nvidia.com/computedomain-scope"
ALLOCATION = "nvidia.com/computedomain-allocation-mode"
GROUP = "grove.io/mnnvl-group"
OFF = FACTS
ON = msgspec.structs.replace(FACTS, network=Network(auto_mnnvl_enabled=True))
NO_EXPLICIT = msgspec.structs.replace(FACTS, network=Network(explicit_compute_domains=False))
GPUS = {f"{C}.spec.podSpec.containers[0].resources": {"limits": {"nvidia.com/gpu": "8"}}}
OPTED_OUT = {f'metadata.annotations["{KEY}"]': "disabled"}
ENABLED = {f'metadata.annotations["{KEY}"]': "enabled"}
AUTO = f"metadata.annotations.{KEY}"
M = f"{T}.cliques[1]"


def annotated(value):
    return {f'metadata.annotations["{KEY}"]': value}


def named(value, place=C, **more):
    return {f"{place}.annotations": {NAME: value, **({SCOPE: more["scope"]} if more else {})}}
