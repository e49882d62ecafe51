"""Which nodes with accelerators have no channel (B7)."""

from __future__ import annotations

from grove.fabrics.channel_coverage import ChannelCoverage, channel_coverage, coverage_problem
from tests.fabrics.builders import BOTH

NVIDIA = BOTH.of("nvidia")


def test_b7_nodes_without_channel_are_named():
    found = channel_coverage({"a": 8, "b": 4, "c": 8, "cpu": 0}, {"a": 1, "b": 1})
    assert found == ChannelCoverage(3, ("c",), 4)
    assert coverage_problem(found, NVIDIA) == (
        "1 of 3 nodes with accelerators of nvidia have no channel and cannot be in a ComputeDomain: c"
    )
    many = channel_coverage({f"n{number}": 8 for number in range(7)}, {})
    assert coverage_problem(many, NVIDIA).endswith(": n0, n1, n2, n3, n4 and 2 more")
    assert many.smallest == 0


def test_largest_partition_counts_nodes_with_a_channel():
    partitions = {"a": "p", "b": "p", "c": "q", "d": "q", "e": "q", "cpu": ""}
    found = channel_coverage(dict.fromkeys("abcde", 8), dict.fromkeys("abce", 1), partitions)
    assert found.largest_partition == 2
    assert channel_coverage({"a": 8}, {"a": 1}).largest_partition == 0


def test_b7_full_coverage_gives_no_message():
    assert coverage_problem(channel_coverage({"a": 8, "cpu": 0}, {"a": 1}), NVIDIA) == ""
