"""Runs several commands in one process, because imports take most of the time of a command.

Reads a JSON list of command lines from standard input, writes a list of exit codes, outputs and errors.
"""

from __future__ import annotations

import io
import json
import sys

from grove.cli.main import main


def run(arguments: list[str]) -> tuple[int, str, str]:
    """The exit code, the output and the errors of one command."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    sys.stdout, sys.stderr = streams
    code: object = 0
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    out, err = (each.buffer.getvalue().decode() for each in streams)  # type: ignore[attr-defined]
    assert isinstance(code, int)
    return code, out, err


if __name__ == "__main__":
    json.dump([run(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
