"""Finds Helm for the tests of the chart: in the cache or on PATH, or builds it from its Go module."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from grove.local.build import go_build
from grove.local.build.binaries import locked
from grove.local.build.versions import default_minor, same_minor
from grove.local.paths import cache_dir, target
from grove.local.progress import ProgressReporter

SOURCES = Path(__file__).parent
COMMAND = "helm.sh/helm/v3/cmd/helm"


def version() -> str:
    """The version of Helm in go.mod."""
    found = re.search(r"helm\.sh/helm/v3 v(\S+)", (SOURCES / "go.mod").read_text())
    assert found is not None
    return found[1]


def find(reporter: ProgressReporter, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the program; builds it if needed."""
    on_path = shutil.which("helm", path=environ.get("PATH"))
    if on_path and same_minor(version_of(Path(on_path)), version()):
        return Path(on_path)
    folder = _folder(environ)
    if not os.access(folder / "helm", os.X_OK):
        with locked(folder):
            if not os.access(folder / "helm", os.X_OK):  # another run may have built it meanwhile
                _build(folder, reporter, environ)
    return folder / "helm"


def _build(folder: Path, reporter: ProgressReporter, environ: Mapping[str, str]) -> None:
    reporter.say("building helm from source (only once); this takes two minutes")
    module = go_build.Module(SOURCES, COMMAND, _stamps())
    go_build.compile_program("Helm", module, folder / "helm", cache_dir(environ), reporter)


def _stamps() -> dict[str, str]:
    """Link-time variables: without a cluster, charts are rendered for the default Kubernetes version."""
    stamps = {"helm.sh/helm/v3/internal/version.version": f"v{version()}"}
    major, minor = default_minor({}).split(".")
    for package in ("chartutil", "lint/rules"):
        stamps[f"helm.sh/helm/v3/pkg/{package}.k8sVersionMajor"] = major
        stamps[f"helm.sh/helm/v3/pkg/{package}.k8sVersionMinor"] = minor
    return stamps


def version_of(program: Path) -> str:
    """The version that a helm program reports; empty if it reports none."""
    try:
        answer = subprocess.run(
            [program, "version", "--template", "{{.Version}}"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return answer.stdout.strip().lstrip("v")


def _folder(environ: Mapping[str, str]) -> Path:
    recipe = hashlib.sha256(repr(_stamps()).encode())
    for name in ("go.mod", "go.sum"):
        recipe.update((SOURCES / name).read_bytes())
    return cache_dir(environ) / "bin" / f"helm-{version()}-{'-'.join(target())}-{recipe.hexdigest()[:8]}"
