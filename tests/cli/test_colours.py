"""Colours on a terminal, and none with NO_COLOR or in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.shared import ROOT
from tests.terminal import GROVE, run_on_terminal

WARNING = (
    "from grove.cli import main; from grove.logger import get_logger;"
    "main.app.command(lambda: get_logger('grove').warning('w', key='k'), name='warn');"
    "main.main(['warn'])"
)
LOG = (
    "import structlog; from grove.operator import logs;"
    "from grove.api.configuration.types import LogFormat, LogLevel;"
    "logs.configure(LogLevel.INFO, LogFormat.TEXT); structlog.get_logger().warning('w', key='k')"
)
COMMANDS = {
    "help": [GROVE, "help"],
    "error": [GROVE, "gett"],
    "warning": [sys.executable, "-c", WARNING],
    "operator log": [sys.executable, "-c", LOG],
    "make help": ["make", "--no-print-directory", "-C", str(ROOT), "help"],
}


@pytest.fixture(params=COMMANDS.values(), ids=COMMANDS)
def command(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


def test_terminal_has_colours_unless_no_color_is_set(command):
    assert "\x1b[" in run_on_terminal(command)[1]
    _, plain = run_on_terminal(command, NO_COLOR="1")
    assert plain
    assert "\x1b" not in plain
    assert "\x1b[" in run_on_terminal(command, NO_COLOR="")[1], "an empty variable counts as unset"


def test_pipes_carry_no_escapes(command):
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    ended = subprocess.run(command, capture_output=True, check=False, env={**variables, "TERM": "xterm"})
    assert ended.stdout + ended.stderr
    assert b"\x1b" not in ended.stdout + ended.stderr


def test_log_in_a_file_has_no_escapes_on_a_terminal(tmp_path):
    file = tmp_path / "log"
    for code in (WARNING, LOG):
        run_on_terminal(["sh", "-c", 'exec "$@" 2> "$0"', str(file), sys.executable, "-c", code])
        assert "w" in file.read_text()
        assert "\x1b" not in file.read_text()
