"""Lines of logs on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from grove.cli.pod_logs.lines import LogLine
from grove.cli.pod_logs.output import LineFormat, LogOutput
from grove.cli.pod_logs.sources import LogSource

MAIN, OTHER = LogSource("demo-0-a-x", "main", "1"), LogSource("demo-0-b-y", "main", "2")
LINE = LogLine(1.0, b"1970-01-01T00:00:01Z", b"\x1b[31mred\x1b[2J\xff")
R = "\N{REPLACEMENT CHARACTER}"


def console(width: int = 120, colours: bool = True) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, color_system="standard" if colours else None
    )


def printed(capfdbinary: pytest.CaptureFixture[bytes], output: LogOutput, *sources: LogSource) -> bytes:
    for source in sources:
        output.write(source, [LINE])
    output.flush()
    return capfdbinary.readouterr().out


def test_lines_are_unchanged_if_not_on_a_terminal(capfdbinary):
    output = LogOutput(LineFormat(), Console(file=io.StringIO()), "demo")
    assert printed(capfdbinary, output, MAIN) == b"[demo-0-a-x/main] " + LINE.text + b"\n"


def test_each_pod_has_a_colour_and_its_lines_end_with_a_reset(capfdbinary):
    output = LogOutput(LineFormat(), console(), "demo")
    first, second = printed(capfdbinary, output, MAIN, OTHER).decode().splitlines()
    assert first == f"\x1b[36m[demo-0-a-x/main]\x1b[0m \x1b[31mred{R}[2J{R}\x1b[0m"
    assert second.startswith("\x1b[33m[demo-0-b-y/main]\x1b[0m ")


def test_terminal_without_colours_has_none(capfdbinary):
    output = LogOutput(LineFormat(), console(colours=False), "demo")
    assert printed(capfdbinary, output, MAIN).decode() == f"[demo-0-a-x/main] red{R}[2J{R}\n"


def test_prefix_is_shortened_on_a_narrow_terminal(capfdbinary):
    output = LogOutput(LineFormat(), console(40, colours=False), "demo")
    assert printed(capfdbinary, output, MAIN).decode().startswith("[…-0-a-x/main] red")


def test_time_and_no_prefix_can_be_chosen(capfdbinary):
    output = LogOutput(LineFormat(prefix=False, timestamps=True), Console(file=io.StringIO()), "demo")
    assert printed(capfdbinary, output, MAIN) == LINE.stamp + b" " + LINE.text + b"\n"
