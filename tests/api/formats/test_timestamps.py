"""Parsing and rendering of timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.formats import timestamps

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


def test_timestamps_match_kubernetes_format():
    assert timestamps.render(NOON) == "2026-03-31T12:00:00Z"
    assert timestamps.render(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-03-31T12:00:00Z"
    assert timestamps.parse("2026-03-31T12:00:00Z") == NOON
    assert timestamps.parse("2026-03-31T12:00:00.250000Z") == NOON + timedelta(milliseconds=250)


def test_moment_without_time_zone_raises():
    with pytest.raises(ValueError, match="has no time zone"):
        timestamps.render(datetime(2026, 3, 31))  # noqa: DTZ001 - the error under test


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_timestamps_round_trip_to_the_second(moment):
    assert timestamps.parse(timestamps.render(moment)) == moment.replace(microsecond=0)
