"""Processes that outlive the command that starts them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grove.local.cluster.processes import Process, find_process, spawn, start_time, stop, tail
from grove.local.errors import LocalError

SLEEPER = [sys.executable, "-c", "import sys, time; print('at work', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(600)",
]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    started: list[Process] = []

    def start(command: list[str]) -> Process:
        started.append(spawn(command, tmp_path / "log", tmp_path / "pid"))
        return started[-1]

    yield start
    for process in started:
        stop(process, 0)


def wait_for_log(log: Path) -> None:
    follow = subprocess.Popen(
        ["tail", "-n", "+1", "-F", str(log)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert follow.stdout is not None
    assert follow.stdout.readline(), "the process wrote output"
    follow.kill()
    follow.wait()
    follow.stdout.close()


def test_process_is_found_by_pid_file(start, tmp_path) -> None:
    process = start(SLEEPER)
    assert find_process(tmp_path / "pid") == process
    assert process.alive


def test_stopped_process_is_not_found(start, tmp_path) -> None:
    process = start(SLEEPER)
    stop(process, 5)
    assert not process.alive
    assert find_process(tmp_path / "pid") is None


def test_process_ignoring_sigterm_is_killed(start, tmp_path) -> None:
    process = start(STUBBORN)
    wait_for_log(tmp_path / "log")
    stop(process, 0.1)
    assert not process.alive


def test_reused_pid_is_not_our_process(start, tmp_path) -> None:
    process = start(SLEEPER)
    (tmp_path / "pid").write_text(f"{process.pid} 1")
    assert find_process(tmp_path / "pid") is None
    stop(Process(process.pid, "1"), 0)
    assert process.alive, "another process is not stopped"


@pytest.mark.parametrize("content", ["", "garbage", "99999999 1"])
def test_pid_file_without_process(tmp_path, content) -> None:
    (tmp_path / "pid").write_text(content)
    assert find_process(tmp_path / "pid") is None


def test_exited_unreaped_child_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # end of file when the child exits
    child.stdout.close()
    while start_time(child.pid):
        pass  # the child becomes a zombie microseconds after its output is closed
    assert start_time(child.pid) == ""
    child.wait()


def test_missing_program_is_one_line(tmp_path) -> None:
    with pytest.raises(LocalError, match="cannot run"):
        spawn([str(tmp_path / "nothing")], tmp_path / "log", tmp_path / "pid")


def test_tail_returns_last_lines(tmp_path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(f"line {n}" for n in range(5000)))
    assert tail(log, 2) == "line 4998\nline 4999"
    assert tail(tmp_path / "nothing") == ""
