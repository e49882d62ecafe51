"""Free slots by level and size."""

from __future__ import annotations

import pytest

from grove.topology.placement.capacity import Accelerators, free_slots

ROWS = [
    # free accelerators of nodes with 8, by block/rack; slots of the sizes by level
    ([("b1", "r1", 8)], [{1: 8, 8: 1, 16: 0}, {1: 8, 8: 1, 16: 0}]),
    ([("b1", "r1", 8), ("b1", "r2", 8)], [{1: 16, 8: 2, 16: 1}, {1: 16, 8: 2, 16: 0}]),
    ([("b1", "r1", 6), ("b1", "r1", 6)], [{1: 12, 8: 0, 16: 0}, {1: 12, 8: 0, 16: 0}]),
    ([("b1", "r1", 8), ("b2", "r1", 8)], [{1: 16, 8: 2, 16: 0}, {1: 16, 8: 2, 16: 0}]),
    ([("b1", "r1", 8), ("b1", "r1", -8)], [{1: 8, 8: 1, 16: 0}, {1: 8, 8: 1, 16: 0}]),
    ([("b1", "", 8)], [{1: 8, 8: 1, 16: 0}, {1: 0, 8: 0, 16: 0}]),
    ([("", "", 8)], [{1: 0, 8: 0, 16: 0}, {1: 0, 8: 0, 16: 0}]),
    ([("b1", "r1", 8), ("b1", "", 8)], [{1: 8, 8: 1, 16: 0}, {1: 8, 8: 1, 16: 0}]),
    ([], [{1: 0, 8: 0, 16: 0}, {1: 0, 8: 0, 16: 0}]),
]


@pytest.mark.parametrize(("nodes", "expected"), ROWS)
def test_free_slots_by_level(nodes: list[tuple[str, str, int]], expected: list[dict[int, int]]) -> None:
    found = [Accelerators((block, rack), 8, free) for block, rack, free in nodes]
    assert free_slots(found, 2, (1, 8, 16)) == tuple(expected)


def test_slots_of_all_sizes_are_reported() -> None:
    nodes = [Accelerators(("b",), 8, 8)] * 8
    assert free_slots(nodes, 1) == ({1: 64, 8: 8, 16: 4, 32: 2, 64: 1},)


def test_rest_of_a_job_takes_part_of_a_node() -> None:
    nodes = [Accelerators(("b",), 8, free) for free in (8, 8, 4)]
    assert free_slots(nodes, 1, (12,)) == ({12: 1},)
    assert free_slots([*nodes, Accelerators(("b",), 8, 4)], 1, (12,)) == ({12: 2},)
