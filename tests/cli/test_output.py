"""Output that cannot be written or encoded, and output that contains markup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GROVE = str(Path(sys.executable).with_name("grove"))
FULL = Path("/dev/full")
BUFFERED = {"PYTHONUNBUFFERED": ""}
AT_ONCE = {"PYTHONUNBUFFERED": "1"}
SHORT = (  # fits into the buffer, and is written at exit
    "from grove.cli import main; main.app.command(lambda: print('short'), name='short'); main.main(['short'])"
)
COMMANDS = [(sys.executable, "-c", SHORT), (GROVE, "crds")]


def run(*command: str, into: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command,
        stdout=into,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("buffering", [BUFFERED, AT_ONCE], ids=["buffered", "at once"])
@pytest.mark.parametrize("command", COMMANDS, ids=["short", "long"])
def test_broken_pipe_is_silent(command, buffering) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = run(*command, into=writing, **buffering)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("buffering", [BUFFERED, AT_ONCE], ids=["buffered", "at once"])
@pytest.mark.parametrize("command", COMMANDS, ids=["short", "long"])
def test_full_disk_is_one_line(command, buffering) -> None:
    with FULL.open("w") as full:
        ended = run(*command, into=full, **buffering)
    assert ended.returncode == 1
    assert ended.stderr == "grove: cannot write (No space left on device): make room, or write elsewhere\n"


@pytest.mark.parametrize("command", COMMANDS, ids=["short", "long"])
def test_closed_stdout_is_silent(command) -> None:
    ended = run("sh", "-c", '"$@" >&-', "sh", *command, into=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_unencodable_characters_are_replaced(tmp_path) -> None:
    config = tmp_path / "rücken.yaml"
    ended = run(GROVE, "get", "--kubeconfig", str(config), into=subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert ended.returncode == 1
    assert "does not exist: check the path" in ended.stderr
    shown = subprocess.run(
        [sys.executable, "-c", "from grove.cli import main; main.ready_output(); print('├─ router')"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert shown.stdout.rstrip() == b"?? router"


def test_brackets_are_printed_literally(tmp_path) -> None:
    """Brackets occur in the address of a server, and in messages of the API server."""
    name = "[fd00::1][/tmp]"
    missing = run(GROVE, "get", "--kubeconfig", f"nowhere/{name}", into=subprocess.PIPE)
    assert missing.stderr == f"grove: kubeconfig nowhere/{name} does not exist: check the path\n"
    (tmp_path / name / "run").mkdir(parents=True)
    result = run(GROVE, "down", "--delete", "--state-dir", str(tmp_path / name), into=subprocess.PIPE)
    assert result.stdout == f"nothing was running, removed {tmp_path}/{name}\n"


def test_missing_state_directory_is_not_reported_removed(tmp_path) -> None:
    result = run(GROVE, "down", "--delete", "--state-dir", str(tmp_path / "nothing"), into=subprocess.PIPE)
    assert (result.returncode, result.stdout) == (0, "nothing was running\n")
