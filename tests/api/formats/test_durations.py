"""Parsing and rendering of Go's durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.formats import durations

PRINTED = [
    ("4h0m0s", timedelta(hours=4)),
    ("1m30s", timedelta(seconds=90)),
    ("1h0m0.5s", timedelta(hours=1, milliseconds=500)),
    ("1.5s", timedelta(seconds=1.5)),
    ("250ms", timedelta(milliseconds=250)),
    ("1.5ms", timedelta(microseconds=1500)),
    ("7µs", timedelta(microseconds=7)),
    ("0s", timedelta()),
    ("-2m0s", timedelta(minutes=-2)),
]


@pytest.mark.parametrize(("text", "duration"), PRINTED)
def test_durations_match_go_format(text, duration):
    assert durations.parse(text) == duration
    assert durations.render(duration) == text


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("4h", timedelta(hours=4)),
        ("90s", timedelta(seconds=90)),
        ("+1.5h", timedelta(minutes=90)),
        (".5s", timedelta(milliseconds=500)),
        ("1us", timedelta(microseconds=1)),
        ("2000ns", timedelta(microseconds=2)),
        ("0", timedelta()),
    ],
)
def test_other_notations_are_parsed(text, duration):
    assert durations.parse(text) == duration


@pytest.mark.parametrize("text", ["", "4", "4 h", "h", "1d", "4h30", "--1s", "1s ", "1,5s"])
def test_invalid_duration_error_quotes_the_text(text):
    with pytest.raises(ValueError, match=f'^"{text}" is not a duration'):
        durations.parse(text)


@pytest.mark.parametrize("text", ["999999999999h", "9" * 30 + "h", "9" * 9_000 + "h", "-999999999999h"])
def test_too_long_duration_raises(text):
    with pytest.raises(ValueError, match="is too long for a duration") as caught:
        durations.parse(text)
    assert len(str(caught.value)) < 200


@given(st.timedeltas(timedelta(days=-1000), timedelta(days=1000)))
def test_durations_round_trip(duration):
    assert durations.parse(durations.render(duration)) == duration
