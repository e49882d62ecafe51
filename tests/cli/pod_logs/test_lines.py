"""Logs as lines with times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove import timing
from grove.cli.pod_logs.lines import LineSplitter, LogLine, seconds_of


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (b"1970-01-01T00:00:01Z", 1.0),
        (b"1970-01-01T00:00:01.25Z", 1.25),
        (b"1970-01-01T00:00:01.250000999Z", 1.25),
        (b"1970-01-01T01:00:01.5+01:00", 1.5),
        (b"failed", None),
        (b"2026-01-01", None),
        (b"2026-99-01T00:00:01Z", None),
        (b"2026-\xff\xff-01T00:00:01Z", None),
        (b"", None),
    ],
)
def test_stamp_is_read_in_all_notations(stamp, expected):
    assert seconds_of(stamp) == expected


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 300)))
def test_lines_do_not_depend_on_how_the_log_is_cut(texts, cuts):
    data = b"".join(b"1970-01-01T00:00:05Z " + text + b"\n" for text in texts)
    whole, pieces, start = LineSplitter().feed(data), LineSplitter(), 0
    found = []
    for cut in sorted(min(cut, len(data)) for cut in cuts):
        found += pieces.feed(data[start:cut])
        start = cut
    found += pieces.feed(data[start:]) + pieces.end()
    assert found == whole
    assert [line.text for line in found] == [text.removesuffix(b"\r") for text in texts]


def test_line_without_time_has_that_of_the_line_before():
    lines = LineSplitter().feed(b"1970-01-01T00:00:05Z a\nunable to read\n")
    assert lines[1] == LogLine(5.0, b"", b"unable to read")


def test_line_without_end_is_split(monkeypatch):
    monkeypatch.setattr(timing, "LOG_LINE", 100)
    splitter = LineSplitter()
    assert [len(line.text) for line in splitter.feed(b"x" * 150) + splitter.feed(b"y" * 50)] == [150]
    assert [line.text for line in splitter.end()] == [b"y" * 50]
