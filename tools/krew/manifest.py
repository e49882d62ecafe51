"""The manifest of the plug-in, as the index of krew contains it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.krew.archive import LICENSE, PROGRAM, ROOT
from tools.krew.platforms import Platform

SHORT = "Inspect and operate gangs of pods (PodCliqueSets)"
DESCRIPTION = """\
Shows PodCliqueSets with their gangs, pods and placement, explains why a workload waits and what would
help, and plans whether a workload fits before it is applied.
"""
CAVEATS = """\
Needs Python 3.11 or later as python3 on the PATH.

For completion of `kubectl grove`, link the program under the name that kubectl looks for:

    ln -s kubectl-grove ~/.krew/bin/kubectl_complete-grove
"""


def manifest(archives: Mapping[Platform, Path], url: str) -> str:
    """The manifest of archives that are published below a URL."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    spec = {
        "version": f"v{project['version']}",
        "homepage": url.rstrip("/"),
        "shortDescription": SHORT,
        "description": DESCRIPTION,
        "caveats": CAVEATS,
        "platforms": [_platform(each, file, url) for each, file in archives.items()],
    }
    body = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "grove"},
        "spec": spec,
    }
    return yaml.safe_dump(body, sort_keys=False, width=110)


def _platform(platform: Platform, archive: Path, url: str) -> dict[str, Any]:
    return {
        "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
        "uri": f"{url.rstrip('/')}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": PROGRAM,
        "files": [{"from": name, "to": "."} for name in (PROGRAM, LICENSE)],
    }
