"""Paths outside of the checkout: the cache, and the state of clusters."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from grove.local.errors import LocalError

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The cache: binaries and toolchains, which can be downloaded or built again."""
    if chosen := environ.get("GROVE_CACHE"):
        return Path(chosen)
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grove"


def default_state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The state directory of the default cluster."""
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "grove" / "default"


def target() -> tuple[str, str]:
    """Operating system and architecture as Go names them."""
    system = "darwin" if sys.platform == "darwin" else "linux"
    machine = platform.machine().lower()
    if machine not in _ARCHITECTURES:
        raise LocalError(f"no control plane for a {machine} machine: amd64 and arm64 are supported")
    return system, _ARCHITECTURES[machine]
