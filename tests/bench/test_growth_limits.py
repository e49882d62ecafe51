"""The limits of growth: which are checked, and when one is missed."""

from __future__ import annotations

import json

import pytest
from bench.growth.fairness import compared
from bench.growth.limits import limits, marginal_kib
from bench.growth.report import RESULTS, kept, merge, results_file
from bench.growth.scale import Scale, parse_sizes


def row(pods, *, calls=6.0, cpu=3.0, mib=None, ready=None, floor=None):
    """A size whose costs are flat, with 10 KiB for each pod on a base of 50 MiB."""
    ours = {
        "calls_per_pod": calls,
        "cpu_ms_per_pod": cpu,
        "rss_mib": 50 + pods * 10 / 1024 if mib is None else mib,
        "ready": pods / 50 if ready is None else ready,
    }
    return {"pods": pods, "ours": ours, "floor": {"ready": pods / 60 if floor is None else floor}}


def sizes(**last):
    rows = [row(1000), row(2000), row(10000, **last)]
    return {"pods_each": 8, "sizes": rows}


def missed(name, result):
    return [limit.what for limit in limits(name, result) if not limit.budget.kept]


def test_flat_costs_keep_all_limits_of_sizes():
    assert kept({"gangs_of_8": sizes()})
    assert {limit.what: round(limit.measured, 6) for limit in limits("gangs_of_8", sizes())} == {
        "gangs of 8: calls per pod, 2,000 / 1,000 pods": 1,
        "gangs of 8: CPU per pod, ms, 2,000 / 1,000 pods": 1,
        "gangs of 8: ready / floor, 2,000 / 1,000 pods": 1,
        "gangs of 8: calls per pod, 10,000 / 1,000 pods": 1,
        "gangs of 8: CPU per pod, ms, 10,000 / 1,000 pods": 1,
        "gangs of 8: ready / floor, 10,000 / 1,000 pods": 1,
        "gangs of 8: KiB per further pod, 2,000-10,000 / 1,000-2,000": 1,
    }


@pytest.mark.parametrize(
    ("last", "what"),
    [
        ({"calls": 6.61}, "calls per pod, 10,000 / 1,000 pods"),
        ({"cpu": 3.31}, "CPU per pod, ms, 10,000 / 1,000 pods"),
        ({"ready": 221}, "ready / floor, 10,000 / 1,000 pods"),
        ({"floor": 150}, "ready / floor, 10,000 / 1,000 pods"),
        ({"mib": 50 + (2000 + 8000 * 1.11) * 10 / 1024}, "KiB per further pod, 2,000-10,000 / 1,000-2,000"),
    ],
)
def test_cost_that_grows_with_size_misses_its_limit(last, what):
    assert missed("gangs_of_8", sizes(**last)) == [f"gangs of 8: {what}"]
    assert not kept({"gangs_of_8": sizes(**last)})


def test_time_that_grows_with_the_floor_is_kept():
    assert missed("gangs_of_8", sizes(ready=2000, floor=2000 * 50 / 60)) == []


def test_memory_of_a_further_pod_excludes_the_base():
    assert marginal_kib([row(1000, mib=60), row(2000, mib=70), row(4000, mib=80)]) == [
        (1000, 2000, 10.24),
        (2000, 4000, 5.12),
    ]


def test_sizes_without_more_memory_have_limits():
    rows = [row(40, mib=50), row(80, mib=50), row(160, mib=49)]
    assert missed("gangs_of_8", {"pods_each": 8, "sizes": rows}) == []


def test_restart_that_writes_misses_its_limit():
    assert missed("restart", {"pods": 10000, "writes": 0}) == []
    assert missed("restart", {"pods": 10000, "writes": 1}) == ["restart with 10,000 pods: writes"]


@pytest.mark.parametrize(
    ("ready", "calls", "what"),
    [
        (11.0, 2971, []),
        (11.1, 2971, ["200 sets at once: ready / floor"]),
        (11.0, 2972, ["200 sets at once: calls / contract's"]),
    ],
)
def test_many_sets_are_compared_with_their_floor(ready, calls, what):
    ours, floor = {"ready": ready, "calls": calls}, {"ready": 10.0, "calls": 2600}
    assert missed("many_sets", {"sets": 200, "ours": ours, "floor": floor}) == what


@pytest.mark.parametrize(
    ("beside", "late", "fair"), [(2.0, 0, True), (2.1, 0, False), (1.0, 2, True), (1.0, 3, False)]
)
def test_small_set_may_take_twice_its_time_alone(beside, late, fair):
    result = {"pods": 10, "large_replicas": 5000, "alone": {"ready": 1.0}, "beside": {"ready": beside}}
    assert kept({"fairness": {**result, "runs_too_late": late}}) is fair


def test_small_sets_after_the_large_start_are_left_out():
    alone = [{"ready": 1.0, "floor_ready": 0.5}]
    beside = [
        {"ready": 3.0, "floor_ready": 2.0, "share_after": 0.6},
        {"ready": 1.0, "floor_ready": 0.5, "share_after": 1.0},
        {"ready": 1.0, "floor_ready": 0.5, "share_after": 1.0},
    ]
    assert compared(alone, beside) == {
        "alone": {"ready": 1.0, "floor_ready": 0.5},
        "beside": {"ready": 3.0, "floor_ready": 2.0},
        "runs_too_late": 2,
    }


@pytest.mark.parametrize(
    ("memory", "steady"),
    [
        ([60.0, 65, 69, 70, *[70] * 36, *[73] * 10], True),
        ([60.0, 65, 69, 70, *[70] * 36, *[74] * 10], False),
        ([60.0 + cycle for cycle in range(50)], False),
    ],
)
def test_memory_over_cycles_may_grow_by_five_percent(memory, steady):
    assert kept({"cycles": {"resident_mib": memory}}) is steady


def test_too_few_cycles_have_no_limit():
    assert limits("cycles", {"resident_mib": [60.0 + cycle for cycle in range(24)]}) == []


def test_merged_measurement_replaces_only_itself(tmp_path):
    file = tmp_path / "growth.json"
    merge("restart", {"pods": 10, "writes": 1}, file)
    merge("cycles", {"resident_mib": [60.123456]}, file)
    merge("restart", {"pods": 10, "writes": 0}, file)
    found = json.loads(file.read_text())
    assert found["cycles"] == {"resident_mib": [60.12], "limits": {}}
    assert found["restart"]["writes"] == 0
    assert [each["kept"] for each in found["restart"]["limits"].values()] == [True]


@pytest.mark.parametrize("scale", [Scale(sizes=(1000, 2000)), Scale(cycles=3)])
def test_trial_never_replaces_results_of_the_full_scale(scale, tmp_path):
    assert results_file(scale, None) is None
    assert results_file(scale, tmp_path / "trial.json") == tmp_path / "trial.json"
    with pytest.raises(ValueError, match="choose another file"):
        results_file(scale, RESULTS)


def test_full_scale_is_merged_into_the_results(tmp_path):
    assert results_file(Scale(), None) == RESULTS
    assert results_file(Scale(), tmp_path / "other.json") == tmp_path / "other.json"


def test_full_scale_is_what_the_limits_are_for():
    scale = Scale()
    assert (scale.restarted, scale.sets, scale.started, scale.cycled) == (10000, 200, 5000, 1000)
    assert parse_sizes("1000,2000,5000,10000") == scale.sizes


@pytest.mark.parametrize("text", ["80,40", "40,40", "41", "0", "many"])
def test_sizes_that_cannot_be_measured_are_refused(text):
    with pytest.raises(ValueError, match="multiples of 8"):
        parse_sizes(text)
