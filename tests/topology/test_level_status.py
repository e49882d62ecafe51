"""The status of topology levels: labelled nodes, number of domains and nesting violations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grove.api.types.clustertopology import TopologyLevel
from grove.topology.level_status import level_statuses

LEVELS = (TopologyLevel("zone", "z"), TopologyLevel("rack", "r"), TopologyLevel("host", "h"))


def nodes(*places: str) -> list[dict[str, str]]:
    """`z1 r1 h1` is a node with these labels; `-` is a missing label."""
    return [
        {key: value for key, value in zip("zrh", place.split(), strict=True) if value != "-"}
        for place in places
    ]


def counts(*places: str) -> list[tuple[str, int, int, int]]:
    return [
        (each.domain, each.labelled_nodes, each.values, each.nesting_violations)
        for each in level_statuses(LEVELS, nodes(*places))
    ]


def test_labels_and_values_are_counted_per_level():
    assert counts("z1 r1 h1", "z1 r1 h2", "z1 r2 h3", "z2 r3 h4", "- - h5") == [
        ("zone", 4, 2, 0),
        ("rack", 4, 3, 0),
        ("host", 5, 5, 0),
    ]
    assert counts() == [("zone", 0, 0, 0), ("rack", 0, 0, 0), ("host", 0, 0, 0)]


def test_nesting_violations_have_examples():
    _, rack, host = level_statuses(LEVELS, nodes("z1 r1 h1", "z2 r1 h2", "- r1 h3", "z1 r2 h4", "z1 r3 h4"))
    assert (rack.nesting_violations, rack.examples) == (1, ("rack r1 is in zone (none) and z1 and z2",))
    assert (host.nesting_violations, host.examples) == (1, ("host h4 is in rack r2 and r3",))


def test_examples_are_limited():
    many = [f"z{zone} r{rack} h" for zone in range(9) for rack in range(50)]
    _, rack, host = level_statuses(LEVELS, nodes(*many))
    assert rack.nesting_violations == 50
    assert len(rack.examples) == 3
    assert host.examples == ("host h is in rack r0 and r1 and r10 and others",)


LABELS = st.dictionaries(st.sampled_from("zrhx"), st.sampled_from("abc"))


@given(st.lists(LABELS, max_size=12), st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_node_order(labels, chance):
    before = level_statuses(LEVELS, labels)
    chance.shuffle(labels)
    assert level_statuses(LEVELS, labels) == before
    for each in before:
        assert each.nesting_violations <= each.values <= each.labelled_nodes <= len(labels)
