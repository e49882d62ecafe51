"""Commands are imported when they run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grove.cli.main import COMMANDS, app

IMPORTED = """
import sys
from grove.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(*sys.modules)
"""


def imported_by(*arguments: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], capture_output=True, check=True, text=True
    )
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["help"], ["--version"]], ids=" ".join)
def test_list_of_commands_imports_no_command(arguments):
    modules = imported_by(*arguments)
    assert "cyclopts" in modules
    slow = {"aiohttp", "asyncio", "cryptography", "markdown_it", "msgspec", "structlog", "yaml"}
    assert not modules & slow
    assert {name for name in modules if name.startswith("grove.cli.commands.")} == set()


def test_command_imports_no_other_command():
    modules = imported_by("tree", "--help")
    loaded = {name for name in modules if name.startswith("grove.cli.commands.")}
    package = "grove.cli.commands.inspection"
    assert loaded == {package, f"{package}.tree", "grove.cli.commands.common"}
    assert not {name for name in modules if name.startswith(("grove.local", "grove.webhooks", "aiohttp"))}


@pytest.mark.parametrize("command", ["explain", "topology"])
def test_cluster_is_read_before_most_is_imported(command):
    """The rest is imported while the API server lists nodes and pods."""
    modules = imported_by(command, "--help")
    assert "grove.kube.client.client" in modules
    late = ("grove.dry_run", "grove.operator.observers", "grove.plan.replica", "aiohttp")
    assert not {name for name in modules if name.startswith(late)}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_of_the_list_has_help_of_its_own(name):
    assert app[name].default_command is not None or name in ("cluster", "rollout")
    summary = COMMANDS[name][1]
    assert summary.endswith(".")
    assert len(summary) < 110


LOGGED = """
from grove.cli.command_logs import log_later
from grove.logger import get_logger

def fail(value):
    raise ValueError("wrong")

log_later()
try:
    fail("private-" * 2)
except ValueError:
    get_logger("grove").exception("failed")
"""


def test_logged_exception_shows_no_local_variables():
    run = subprocess.run([sys.executable, "-c", LOGGED], capture_output=True, check=True, text=True)
    assert "ValueError: wrong" in run.stderr
    assert "private-private-" not in run.stderr
