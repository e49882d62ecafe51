"""The model of several processes: ranges of hashes, their loads, and what follows from measured figures."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random

import pytest
from bench.sharding import model, report
from bench.sharding.measured import RESULTS, Measured, Watched, line, memory_by_pods, watched
from bench.sharding.namespaces import Names, names_of, zipf_loads
from bench.sharding.ranges import SPACE, equal_ranges, hash_of, loads_of, ranges_by_load
from hypothesis import given
from hypothesis import strategies as st

MEASURED = Measured(
    pods=1000,
    gangs=500,
    calls=3500,
    cpu=4.0,
    floor=12.0,
    objects=2500,
    base_mib=60.0,
    kib_per_pod=10.0,
    events_per_cpu_second=10_000.0,
    placement_cpu_per_gang=0.001,
    search={500: 0.003, 5000: 0.007},
    watched=Watched(6.0, 18_000.0),
    watched_pods=Watched(3.0, 12_000.0),
    watched_gangs=Watched(1.0, 2_000.0),
)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20)
LOADS = st.dictionaries(NAMES, st.floats(0.001, 1000), min_size=1, max_size=40)
COUNTS = st.integers(1, 12)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)],
)
def test_hash_is_that_of_the_published_examples(value, expected):
    assert hash_of(value) == expected


def test_selectors_of_halves_have_the_form_of_the_api():
    assert [each.selector for each in equal_ranges(2)] == [
        "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')",
        "shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')",
    ]


@given(LOADS, COUNTS)
def test_ranges_partition_the_hash_space(loads, count):
    for ranges in (equal_ranges(count), ranges_by_load(loads, count)):
        assert ranges[0].start == 0
        assert ranges[-1].end == SPACE
        assert all(each.start < each.end for each in ranges)
        assert all(one.end == other.start for one, other in pairwise(ranges))
        assert len(ranges) <= count


@given(LOADS, COUNTS)
def test_each_namespace_is_in_exactly_one_range(loads, count):
    for ranges in (equal_ranges(count), ranges_by_load(loads, count)):
        for name in loads:
            assert sum(each.start <= hash_of(name) < each.end for each in ranges) == 1
        assert sum(loads_of(ranges, loads)) == pytest.approx(sum(loads.values()))


@given(LOADS, COUNTS)
def test_largest_range_is_never_worse_than_one_process(loads, count):
    whole = sum(loads.values())
    equal = max(loads_of(equal_ranges(count), loads))
    by_load = max(loads_of(ranges_by_load(loads, count), loads))
    assert equal <= whole * (1 + 1e-9)
    assert by_load <= equal * (1 + 1e-9)
    assert by_load >= max(loads.values()) * (1 - 1e-9)


@given(LOADS, st.integers(1, 11))
def test_one_more_range_by_load_is_never_worse(loads, count):
    fewer, more = (max(loads_of(ranges_by_load(loads, each), loads)) for each in (count, count + 1))
    assert more <= fewer * (1 + 1e-9)


def test_shares_of_namespaces_have_the_sum_one():
    shares = zipf_loads([f"ns-{number}" for number in range(100)])
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["ns-0"] == pytest.approx(2 * shares["ns-1"])


def test_numbered_names_are_all_in_one_of_eight_equal_ranges():
    loads = dict.fromkeys((f"team-{number:02}" for number in range(100)), 0.01)
    assert sorted(loads_of(equal_ranges(8), loads))[:7] == [0.0] * 7
    assert max(loads_of(ranges_by_load(loads, 8), loads)) == pytest.approx(0.13)


@pytest.mark.parametrize("style", Names)
def test_spread_is_the_same_for_the_same_seeds(style):
    first, second = (model.spread(style, model.cut_equally, 50, 4, seeds=5) for _ in range(2))
    assert first == second
    assert 1 - 1e-9 <= first.worst <= first.median <= 4 + 1e-9


def test_names_are_unique_for_each_style():
    for style in Names:
        assert len(set(names_of(style, 200, Random(1)))) == 200


def test_ranges_gain_nothing_while_the_api_server_is_the_bound():
    assert model.seconds_to_ready(MEASURED, 1, None) == model.seconds_to_ready(MEASURED, 1, 8.0) == 12.0
    assert MEASURED.worth == 3.0
    assert model.seconds_to_ready(MEASURED, 6, None) == 4.0
    assert model.seconds_to_ready(MEASURED, 6, 2.0) == 2.0


def test_placement_is_the_bound_of_many_ranges():
    serial = model.placer_cpu(MEASURED)
    assert serial == pytest.approx(500 * 0.001 + 1000 * 4 / 10_000)
    assert model.seconds_to_ready(MEASURED, 1000, 1000.0) == serial
    assert model.serial_share(MEASURED) == pytest.approx(serial / 4)


def test_selection_by_the_server_does_not_grow_with_ranges():
    with_server = [model.traffic(MEASURED, 1000, count, server_side=True).events for count in (2, 4, 8)]
    with_client = [model.traffic(MEASURED, 1000, count, server_side=False).events for count in (1, 2, 4)]
    assert with_server == [10_000] * 3
    assert with_client == [9_000, 16_000, 28_000]


def test_takeover_waits_for_the_lease_and_lists_the_range():
    found = model.takeover(MEASURED, model.Lease(15, 2), 1000, 2, seed=1, crashes=100)
    assert found.share == 0.5
    assert found.objects == 1250
    assert 13 <= found.mean_pause <= found.longest_pause <= 15 + found.listing
    assert model.takeover(MEASURED, model.Lease(15, 2), 1000, 1, seed=1, crashes=100).objects == 0


def test_placement_apart_costs_a_call_for_each_gang():
    assert model.calls_per_pod(MEASURED, placed_apart=False) == 3.5
    assert model.calls_per_pod(MEASURED, placed_apart=True) == 4.0


def test_memory_is_read_at_any_depth_without_pods_of_others():
    result = {
        "ours": {"pods": 1000, "rss_mib": 66.0},
        "sizes": [{"pods": 5000, "operator": {"pods": 5000, "rss_mib": 106.0}}],
        "crowded": {"pods": 1000, "foreign": 5000, "rss_mib": 99.0},
    }
    assert memory_by_pods(result) == {1000: 66.0, 5000: 106.0}
    assert line(memory_by_pods(result)) == pytest.approx((56.0, 0.01))


def test_events_are_writes_except_those_of_pods():
    trial = {
        "pods": 10,
        "watched": {"pods": [{"events": 30, "bytes": 3000}], "podgangs": [{"events": 5, "bytes": 50}]},
    }
    ours = {"pods": 2, "by_call": {"create pods": 2, "create podgangs": 1, "patch podgangs/status": 2}}
    assert watched(trial, ours) == {"pods": Watched(3.0, 300.0), "podgangs": Watched(1.5, 15.0)}


def test_recorded_halves_have_all_events_and_objects_once():
    trial = json.loads((RESULTS / "sharding.json").read_text())
    for whole, *halves in trial["watched"].values():
        assert whole["events"] == sum(each["events"] for each in halves)
        assert whole["bytes"] == sum(each["bytes"] for each in halves)
        assert [each["namespaces"] for each in halves] == trial["expected_namespaces"]
    for whole, *halves in trial["listed"].values():
        assert whole["objects"] == sum(each["objects"] for each in halves)


def test_page_without_a_place_for_a_table_is_an_error():
    page = "<!-- a: python -m bench.sharding -->\nold\n<!-- end of a -->\n"
    assert "new" in report.insert(page, {"a": "new"})
    with pytest.raises(ValueError, match="0 places for the table b"):
        report.insert(page, {"b": "new"})
