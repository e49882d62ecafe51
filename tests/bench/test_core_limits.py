"""The limits of the operator: which are checked, and when one is missed."""

from __future__ import annotations

import pytest
from bench.core.limits import limits
from bench.core.report import kept

RESULT = {
    "floor": {"ready": 10.0, "cpu": 2.0, "deleted_half": 2.0, "deleted": 4.0},
    "ours": {
        "pods": 1000,
        "ready": 11.0,
        "cpu": 2.6,
        "rss_mib": 75.0,
        "deleted_half": 3.0,
        "deleted": 6.0,
        "pods_deleted": 5.0,
        "calls": 4000,
        "idle_calls": 0,
        "annotation_calls": 0,
    },
    "updated": {"pods": 70, "calls": 560},
}


def test_results_at_their_limits_are_kept():
    assert kept(RESULT)
    assert {limit.what: limit.measured for limit in limits(RESULT)} == {
        "pods ready / contract floor": 1.1,
        "operator CPU / contract floor's client": 1.3,
        "half scaled in / bare delete": 1.5,
        "all deleted / bare delete": 1.5,
        "cliques and gangs gone after the pods, s": 1.0,
        "memory, MiB": 75,
        "calls after an annotation is touched": 0,
        "calls per minute at rest": 0,
        "calls per pod": 4,
        "calls for each pod of a rolling update": 8,
    }


@pytest.mark.parametrize(
    ("run", "change", "missed"),
    [
        ("ours", {"ready": 11.1}, "pods ready / contract floor"),
        ("ours", {"cpu": 2.7}, "operator CPU / contract floor's client"),
        ("ours", {"rss_mib": 75.1}, "memory, MiB"),
        ("floor", {"deleted_half": 1.9}, "half scaled in / bare delete"),
        ("floor", {"deleted": 3.9}, "all deleted / bare delete"),
        ("ours", {"pods_deleted": 4.9}, "cliques and gangs gone after the pods, s"),
        ("ours", {"annotation_calls": 1}, "calls after an annotation is touched"),
        ("updated", {"calls": 561}, "calls for each pod of a rolling update"),
    ],
)
def test_worse_result_misses_its_limit(run, change, missed):
    result = {**RESULT, run: {**RESULT[run], **change}}
    assert [limit.what for limit in limits(result) if not limit.budget.kept] == [missed]
    assert not kept(result)


def test_limits_of_what_is_not_measured_are_left_out():
    assert [limit.what for limit in limits({"updated": RESULT["updated"]})] == [
        "calls for each pod of a rolling update"
    ]
