"""The plugin that records marked tests, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.versions.records import Mark, Record, load, save

from tests.shared import ROOT

SOURCE = """
import pytest

@pytest.mark.proves("gang", scheduler="kai-scheduler")
@pytest.mark.parametrize("number", range(3))
def test_gang(number):
    assert number < {limit}

@pytest.mark.proves("queues", scheduler="volcano")
@pytest.mark.proves("priority", scheduler="volcano")
def test_queue():
    pytest.skip("no queue")

def test_other():
    pass
"""
PLUGIN = """
from tests.versions import plugin

pytest_plugins = ["tests.versions.plugin"]
plugin._release = lambda: "1.36.3"
"""
"""The release is asked from the API server's program, which may not be on this machine."""
GANG = Mark("tests/test_it.py::test_gang", "gang", "kai-scheduler")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests are recorded in its own folder."""
    (tmp_path / "tests/versions").mkdir(parents=True)
    (tmp_path / "conftest.py").write_text(PLUGIN)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = proves")
    return tmp_path


def run(project: Path, source: str, *arguments: str) -> str:
    """The output of a run of pytest that records version 1.36."""
    (project / "tests/test_it.py").write_text(source)
    options = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--record-versions")
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    environment = {**os.environ, "PYTHONPATH": paths, "GROVE_KUBERNETES": "1.36"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def outcomes(project: Path) -> dict[str, tuple[str, int]]:
    return {record.feature: (record.outcome, record.cases) for record in load("1.36", project)}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_outcome_of_a_test_is_its_worst_case(project: Path, workers: str) -> None:
    assert "recorded 3 on Kubernetes 1.36.3: tests/versions/1.36.json" in run(
        project, SOURCE.format(limit=2), "-n", workers
    )
    assert outcomes(project) == {"gang": ("failed", 3), "queues": ("skipped", 1), "priority": ("skipped", 1)}


def test_test_that_ran_in_part_keeps_its_record(project: Path) -> None:
    before = Record(*GANG, "passed", 3, "1.36.2", "2026-01-01")
    gone = Record("tests/test_it.py::test_gone", "gang", "volcano", "passed", 1, "1.36.2", "2026-01-01")
    save("1.36", [before, gone], project)
    output = run(project, SOURCE.format(limit=0), "-k", "test_queue or 1", "-n0")
    assert "not recorded, not all cases ran: tests/test_it.py::test_gang" in output
    assert before in load("1.36", project)
    assert gone not in load("1.36", project)


def test_run_without_marked_tests_writes_nothing(project: Path) -> None:
    assert "nothing to record" in run(project, SOURCE.format(limit=3), "-k", "test_other", "-n0")
    assert load("1.36", project) == []


def test_mark_of_an_unknown_feature_stops_the_run(project: Path) -> None:
    output = run(project, SOURCE.replace('"gang"', '"gnag"'), "-n0")
    assert "test_it.py::test_gang[0]: mark proves: unknown feature 'gnag'; choose one of admission" in output
