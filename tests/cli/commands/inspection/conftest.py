"""Runs commands in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grove.cli.main import main


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str, str]]:
    """Runs a command; returns exit code, output and errors."""

    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err

    return run
