"""The order of places in which programs are searched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from grove.local.build import binaries, go_build
from grove.local.build.versions import KUBERNETES, PROGRAMS
from grove.local.errors import LocalError
from grove.local.progress import ProgressReporter
from tests.local.build.test_releases import mirror, publish_kubernetes  # noqa: F401 - a fixture

QUIET = ProgressReporter(Console(stderr=True), quiet=True)
UNREACHABLE = "http://127.0.0.1:9"


def program(folder: Path, name: str, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {name} v{version}\n")
    path.chmod(0o755)
    return path


def all_programs(folder: Path, **versions: str) -> None:
    for part in PROGRAMS:
        program(folder, part.name, versions.get(part.name.replace("-", "_"), part.version))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with only a shell."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "echo"):
        (tools / name).symlink_to(shutil.which(name) or "")
    return {"GROVE_CACHE": str(tmp_path / "cache"), "PATH": str(tools), "GROVE_MIRROR": UNREACHABLE}


def test_cache_is_searched_first(tmp_path, environ) -> None:
    all_programs(binaries._folder(environ))
    all_programs(tmp_path / "assets")
    found = binaries.find(QUIET, {**environ, "KUBEBUILDER_ASSETS": str(tmp_path / "assets")})
    assert set(found.origins.values()) == {"cache"}


def test_kubebuilder_assets_precede_path(tmp_path, environ) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        version = next(part.version for part in PROGRAMS if part.name == name)
        program(tmp_path / "assets", name, version)
    all_programs(tmp_path / "on-path")
    environ |= {
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "PATH": f"{environ['PATH']}{os.pathsep}{tmp_path / 'on-path'}",
    }
    found = binaries.find(QUIET, environ)
    assert found.origins == {
        "etcd": "KUBEBUILDER_ASSETS",
        "kube-apiserver": "KUBEBUILDER_ASSETS",
        "kubectl": "KUBEBUILDER_ASSETS",
        "kube-controller-manager": "PATH",
        "kube-scheduler": "PATH",
        "kwok": "PATH",
    }


def test_program_of_other_minor_version_is_ignored(tmp_path, environ) -> None:
    all_programs(tmp_path / "assets", kube_apiserver="1.29.4")
    all_programs(tmp_path / "on-path", kube_apiserver="1.36.1")
    environ |= {
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "PATH": f"{environ['PATH']}{os.pathsep}{tmp_path / 'on-path'}",
    }
    found = binaries.find(QUIET, environ)
    assert found.origins["kube-apiserver"] == "PATH"
    assert found.origins["kube-scheduler"] == "KUBEBUILDER_ASSETS"


def test_release_is_downloaded_and_cached(tmp_path, environ, mirror) -> None:  # noqa: F811
    root, served = mirror
    publish_kubernetes(root, "kube-scheduler", b"#!/bin/sh\necho a scheduler\n")
    all_programs(tmp_path / "on-path", kube_scheduler="1.20.0")
    environ |= {**served, "PATH": f"{environ['PATH']}{os.pathsep}{tmp_path / 'on-path'}"}
    assert binaries.find(QUIET, environ).origins["kube-scheduler"] == "release"
    again = binaries.find(QUIET, {**environ, "GROVE_MIRROR": UNREACHABLE})
    assert again.origins["kube-scheduler"] == "cache"


def test_missing_programs_are_built(tmp_path, environ, monkeypatch) -> None:
    def build(destination: Path, toolchains: Path, reporter: ProgressReporter) -> None:
        program(destination.parent, destination.name, KUBERNETES)

    monkeypatch.setattr(go_build, "build", build)
    found = binaries.find(QUIET, environ)
    assert set(found.origins.values()) == {"built"}
    assert all(found[part.name].resolve().name == "controlplane" for part in PROGRAMS)
    assert set(binaries.find(QUIET, environ).origins.values()) == {"cache"}


def test_unwritable_cache_is_one_line(tmp_path, environ) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalError, match=r"cannot write to the cache .*GROVE_CACHE"):
        binaries.find(QUIET, {**environ, "GROVE_CACHE": str(tmp_path / "file")})
