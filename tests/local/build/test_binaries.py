"""The order of places in which programs are searched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from grove.local.build import binaries, go_build
from grove.local.build.versions import KUBERNETES, default_minor, minor_version, programs
from grove.local.errors import LocalError
from grove.local.progress import ProgressReporter
from tests.local.build.test_releases import mirror, publish_kubernetes  # noqa: F401 - a fixture

QUIET = ProgressReporter(Console(stderr=True), quiet=True)
UNREACHABLE = "http://127.0.0.1:9"
MINOR = default_minor({})
PROGRAMS = programs(MINOR)


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
    all_programs(binaries._folder(MINOR, environ))
    all_programs(tmp_path / "assets")
    found = binaries.find(MINOR, QUIET, {**environ, "KUBEBUILDER_ASSETS": str(tmp_path / "assets")})
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
    found = binaries.find(MINOR, QUIET, environ)
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
    all_programs(tmp_path / "on-path", kube_apiserver=f"{MINOR}.9")
    environ |= {
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "PATH": f"{environ['PATH']}{os.pathsep}{tmp_path / 'on-path'}",
    }
    found = binaries.find(MINOR, QUIET, environ)
    assert found.origins["kube-apiserver"] == "PATH"
    assert found.origins["kube-scheduler"] == "KUBEBUILDER_ASSETS"


def test_release_is_downloaded_and_cached(tmp_path, environ, mirror) -> None:  # noqa: F811
    root, served = mirror
    publish_kubernetes(root, "kube-scheduler", b"#!/bin/sh\necho a scheduler\n")
    all_programs(tmp_path / "on-path", kube_scheduler="1.20.0")
    environ |= {**served, "PATH": f"{environ['PATH']}{os.pathsep}{tmp_path / 'on-path'}"}
    assert binaries.find(MINOR, QUIET, environ).origins["kube-scheduler"] == "release"
    again = binaries.find(MINOR, QUIET, {**environ, "GROVE_MIRROR": UNREACHABLE})
    assert again.origins["kube-scheduler"] == "cache"


def test_missing_programs_are_built(tmp_path, environ, monkeypatch) -> None:
    def build(minor: str, destination: Path, toolchains: Path, reporter: ProgressReporter) -> None:
        program(destination.parent, destination.name, KUBERNETES[minor])

    monkeypatch.setattr(go_build, "build", build)
    found = binaries.find(MINOR, QUIET, environ)
    assert set(found.origins.values()) == {"built"}
    assert all(found[part.name].resolve().name == "controlplane" for part in PROGRAMS)
    assert set(binaries.find(MINOR, QUIET, environ).origins.values()) == {"cache"}


def test_unwritable_cache_is_one_line(tmp_path, environ) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalError, match=r"cannot write to the cache .*GROVE_CACHE"):
        binaries.find(MINOR, QUIET, {**environ, "GROVE_CACHE": str(tmp_path / "file")})


def test_versions_have_caches_of_their_own(environ) -> None:
    all_programs(binaries._folder("1.36", environ))
    assert binaries.available("1.36", environ)
    assert not binaries.available("1.37", environ)


@pytest.mark.parametrize("minor", KUBERNETES)
def test_modules_of_each_version_pin_its_release(minor) -> None:
    """All staging modules are of the release, so that a build mixes no versions of Kubernetes."""
    modules = go_build.sources(minor)[0].read_text()
    release = KUBERNETES[minor]
    assert f"k8s.io/kubernetes v{release}\n" in modules
    assert f"k8s.io/api => k8s.io/api v0.{release.removeprefix('1.')}\n" in modules


@pytest.mark.parametrize("text", ["1.36", "v1.36", "1.36.3", "v1.36.3"])
def test_version_is_named_by_minor_or_release(text) -> None:
    assert minor_version(text) == "1.36"


@pytest.mark.parametrize("text", ["1.33", "1.36.1", "latest", ""])
def test_unsupported_version_is_one_line(text) -> None:
    with pytest.raises(LocalError, match=r"^--kubernetes .*: not a supported version; choose one of 1\.37 "):
        minor_version(text)


def test_default_version_comes_from_environment() -> None:
    assert default_minor({"GROVE_KUBERNETES": "1.35"}) == "1.35"
    with pytest.raises(LocalError, match=r"^GROVE_KUBERNETES 2: "):
        default_minor({"GROVE_KUBERNETES": "2"})
