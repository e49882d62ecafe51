"""Bounds of autoscalers: 0, or at least `minAvailable`."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.types.common import AutoScalingConfig
from grove.rules.podcliqueset import autoscaling_bounds, validation
from tests.rules.builders import FACTS, changed, workload
from tests.rules.messages import C, G, scaling

NEEDS_METRIC = "must be greater than 0 without a metric of type Object or External: others need running pods"
BELOW = "must be 0, or greater than or equal to minAvailable"


def config(fewest: int | None, most: int = 4, metrics: tuple[str, ...] = ("External",)) -> AutoScalingConfig:
    raw = tuple(msgspec.Raw(msgspec.json.encode({"type": metric})) for metric in metrics)
    return AutoScalingConfig(max_replicas=most, min_replicas=fewest, metrics=raw)


@pytest.mark.parametrize(
    ("bounds", "least", "expected"),
    [
        (config(0), 1, []),
        (config(0), 4, []),
        (config(0), None, []),
        (config(2, metrics=()), 2, []),
        (config(0, metrics=("Resource", "Object")), 1, []),
        (config(1), 2, [f"x.minReplicas: Invalid value: 1: {BELOW}"]),
        (config(-1), None, [f"x.minReplicas: Invalid value: -1: {BELOW}"]),
        (config(0, metrics=()), 1, [f"x.minReplicas: Invalid value: 0: {NEEDS_METRIC}"]),
        (config(0, metrics=("Resource", "Pods")), 1, [f"x.minReplicas: Invalid value: 0: {NEEDS_METRIC}"]),
        (config(3, 2), 1, ["x.maxReplicas: Invalid value: 2: must be greater than or equal to minReplicas"]),
        (config(0, 2), 3, ["x.maxReplicas: Invalid value: 2: must be greater than or equal to minAvailable"]),
    ],
)
def test_bounds_are_zero_or_at_least_min_available(bounds, least, expected):
    found = autoscaling_bounds.errors("x", bounds, bounds.min_replicas, least)
    assert [str(error) for error in found] == expected


@pytest.mark.parametrize(
    ("fewest", "least", "warned"),
    [(0, 2, True), (0, 1, False), (0, None, False), (2, 2, False), (None, 2, False)],
)
def test_counts_below_min_available_are_warned_of(fewest, least, warned):
    found = list(autoscaling_bounds.warnings("x", config(fewest), least))
    assert bool(found) == warned
    assert all(each.startswith("x.minReplicas is 0 and minAvailable is 2: ") for each in found)


@pytest.mark.parametrize("path", [f"{C}.spec.autoScalingConfig", f"{G}.scaleConfig"])
def test_minimum_of_zero_in_set_is_checked_and_warned_of(path):
    part = path.rpartition(".")[0]
    changes = {f"{part}.replicas": 2, f"{part}.minAvailable": 2, path: scaling(fewest=0)}
    refused = validation.on_create(changed(workload(), changes), FACTS)
    assert [str(error) for error in refused.errors] == [
        f"{path}.minReplicas: Invalid value: 0: {NEEDS_METRIC}"
    ]
    changes[path] = scaling(fewest=0) | {"metrics": [{"type": "External"}]}
    accepted = validation.on_create(changed(workload(), changes), FACTS)
    assert accepted.errors == ()
    assert [each.startswith(f"{path}.minReplicas is 0") for each in accepted.warnings] == [True]
