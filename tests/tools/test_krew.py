"""The archive for krew, built from the packages of this environment, unpacked and run in a clean one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from tools.krew.manifest import manifest
from tools.krew.platforms import PLATFORMS, PYTHONS, Platform

from tests.shared import ROOT

URL = "https://example.com/grove/"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an archive of this machine, and its manifest."""
    output = tmp_path_factory.mktemp("krew") / "dist"
    command = [sys.executable, "-m", "tools.krew", "--local", "--url", URL, "--output", str(output)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return output


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the files of the archive are as krew installs them."""
    (platform,) = yaml.safe_load((built / "grove.yaml").read_text())["spec"]["platforms"]
    archive = built / platform["uri"].removeprefix(URL)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    folder = tmp_path_factory.mktemp("installed")
    with tarfile.open(archive) as packed:
        assert sorted(packed.getnames()) == sorted(each["from"] for each in platform["files"])
        packed.extractall(folder, filter="data")
    assert os.access(folder / platform["bin"], os.X_OK)
    return folder


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program where nothing of this environment can be found, but a Python of the same version."""
    folder = program.parent
    (folder / "bin").mkdir(exist_ok=True)
    python = folder / "bin" / "python3"
    if not python.exists():
        python.symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    variables = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [str(program), *arguments], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def test_program_of_the_archive_runs_in_a_clean_environment(installed):
    ended = run(installed / "kubectl-grove", "--version")
    version = metadata.version("grove-operator")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{version}\n", "")
    plan = ROOT / "docs/examples/whole-racks.yaml"
    planned = run(installed / "kubectl-grove", "plan", "-f", str(plan), "--shape", "2x8", "-o", "json")
    assert (planned.returncode, json.loads(planned.stdout)["verdict"]) == (0, "Fits")


def test_messages_of_the_plugin_name_its_own_commands(installed):
    ended = run(installed / "kubectl-grove", "get", "--foo")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "grove: unknown option --foo: kubectl grove get --help lists all\n"
    assert run(installed / "kubectl-grove", "get", "--help").stdout.startswith("Usage: kubectl grove get ")


def test_link_to_the_program_completes_for_kubectl(installed):
    link = installed / "kubectl_complete-grove"
    link.symlink_to("kubectl-grove")
    assert run(link, "get", "-o", "y").stdout == "yaml\n:4\n"


def test_archive_contains_the_licence(installed):
    assert (installed / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_manifest_has_every_platform(tmp_path):
    archives = {each: tmp_path / each.archive for each in PLATFORMS}
    for file in archives.values():
        file.write_text(file.name)
    found = yaml.safe_load(manifest(archives, URL))
    assert found["metadata"] == {"name": "grove"}
    assert len(found["spec"]["shortDescription"]) <= 50
    labels = [each["selector"]["matchLabels"] for each in found["spec"]["platforms"]]
    assert labels == [{"os": each.os, "arch": each.arch} for each in PLATFORMS]
    assert len({each["sha256"] for each in found["spec"]["platforms"]}) == len(PLATFORMS)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda each: f"{each.os}-{each.arch}")
def test_targets_name_wheels_of_each_python(platform: Platform, tmp_path):
    targets = [json.loads(file.read_text()) for file in platform.write_targets(tmp_path)]
    assert [each["marker_environment"]["python_version"] for each in targets] == [
        f"3.{minor}" for minor in PYTHONS
    ]
    for minor, target in zip(PYTHONS, targets, strict=True):
        best, *others = target["compatible_tags"]
        assert best.startswith(f"cp3{minor}-cp3{minor}-")
        assert best.endswith(platform.machine)
        assert "py3-none-any" in others
