"""Logs merged by the times of their lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.cli.pod_logs.lines import LogLine
from grove.cli.pod_logs.merging import merged
from grove.cli.pod_logs.sources import LogSource
from grove.kube.errors import KubeError


async def log(batches: list[list[float]], closed: list[bool] | None = None) -> AsyncGenerator[list[LogLine]]:
    try:
        for number, batch in enumerate(batches):
            yield [LogLine(at, b"", b"%d" % number) for at in batch]
    finally:
        if closed is not None:
            closed.append(True)


async def times(*logs: list[list[float]]) -> list[tuple[str, float]]:
    named = [(LogSource(f"p{i}", "main", ""), log(batches)) for i, batches in enumerate(logs)]
    return [(source.pod, line.at) async for source, line in merged(named)]


async def test_lines_are_in_the_order_of_their_times():
    assert await times([[1, 4], [5]], [[2], [], [3]], []) == [
        ("p0", 1), ("p1", 2), ("p1", 3), ("p0", 4), ("p0", 5),
    ]  # fmt: skip


async def test_clock_that_was_set_back_does_not_reorder_a_log():
    assert await times([[5, 1, 6]], [[2, 7]]) == [("p1", 2), ("p0", 5), ("p0", 1), ("p0", 6), ("p1", 7)]


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), max_size=4))
async def test_every_line_is_there_once_and_in_its_order(logs):
    found = await times(*logs)
    for number, batches in enumerate(logs):
        assert [at for pod, at in found if pod == f"p{number}"] == [at for batch in batches for at in batch]


async def test_log_that_fails_ends_the_others():
    async def refused() -> AsyncGenerator[list[LogLine]]:
        raise KubeError("no right")
        yield []

    async def slow() -> AsyncGenerator[list[LogLine]]:
        await asyncio.sleep(0.01)
        yield [LogLine(1, b"", b"")]

    logs = [(LogSource(name, "main", ""), each) for name, each in (("a", slow()), ("b", refused()))]
    with pytest.raises(KubeError, match="no right"):
        await anext(merged(logs))


async def test_logs_are_closed_when_nothing_more_is_read():
    closed: list[bool] = []
    lines = merged([(LogSource("p", "main", ""), log([[1], [2]], closed))])
    await anext(lines)
    await lines.aclose()  # type: ignore[attr-defined]
    assert closed == [True]
