"""Latencies of one class of writes: the timeout of the next write, and when the class counts as slow."""

from __future__ import annotations

import structlog

from grove import timing
from grove.kube.executor.write_latency import Latencies, WriteClass

PODS = WriteClass("create", "pods", "n")
OTHER = WriteClass("create", "pods", "other")


def test_timeout_doubles_with_each_timed_out_write() -> None:
    latencies, given = Latencies(), []
    for _ in range(4):
        given.append(latencies.timeout(PODS))
        latencies.record_timeout(PODS, given[-1])
    assert [*given, latencies.timeout(PODS)] == [5.0, 10.0, 20.0, 30.0, timing.WRITE_LONGEST_TIMEOUT]
    assert latencies.timeout(OTHER) == timing.WRITE_FIRST_TIMEOUT


def test_fast_replies_lower_timeout_slowly() -> None:
    latencies = Latencies()
    latencies.record_timeout(PODS, 10.0)
    assert latencies.is_slow(PODS)
    latencies.record_reply(PODS, 0.02)
    assert not latencies.is_slow(PODS)
    assert 10.0 < latencies.timeout(PODS) < 20.0, "other objects of the class may still be slow"
    for _ in range(20):
        latencies.record_reply(PODS, 0.02)
    assert latencies.timeout(PODS) == timing.WRITE_FIRST_TIMEOUT


def test_slow_reply_keeps_timeout_above_its_latency() -> None:
    latencies = Latencies()
    latencies.record_timeout(PODS, 5.0)
    latencies.record_reply(PODS, 6.0)
    assert latencies.timeout(PODS) > 10.0


def test_class_is_slow_if_its_lowest_latency_is() -> None:
    latencies = Latencies()
    for seconds in (0.01, 4.0, 4.0, 4.0):  # load, or one slow pod among fast ones
        latencies.record_reply(PODS, seconds)
    assert not latencies.is_slow(PODS)
    for _ in range(200):
        latencies.record_reply(PODS, 4.0)
    assert latencies.is_slow(PODS)
    assert not latencies.is_slow(OTHER)


def test_late_write_marks_its_class_slow() -> None:
    latencies = Latencies()
    latencies.record_reply(PODS, 0.01)
    latencies.record_late(PODS)
    assert latencies.floor(PODS) == timing.SLOW_WRITE
    assert latencies.is_slow(PODS)


def test_slow_class_is_logged_once_and_its_end_once() -> None:
    latencies = Latencies()
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            latencies.report(PODS, 3.0)
            latencies.record_timeout(PODS, 5.0)
        for _ in range(3):
            latencies.record_reply(PODS, 0.1)
    assert [(line["event"], line["key"], line["action"]) for line in logs] == [
        ("writes are slow", "n", "creating pods"),
        ("writes are fast again", "n", "creating pods"),
    ]


def test_latency_records_are_bounded() -> None:
    latencies = Latencies()
    for number in range(10_000):
        latencies.record_timeout(WriteClass("create", "pods", str(number)), 5.0)
    assert latencies.timeout(WriteClass("create", "pods", "0")) == timing.WRITE_FIRST_TIMEOUT
    assert latencies.timeout(WriteClass("create", "pods", "9999")) == 10.0
