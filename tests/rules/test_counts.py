"""Limits on the pods of a set and of a gang, computed without expanding the set, for numbers of any size."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.types import pod_counts
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.rules.builders import FACTS, bare, clique, group

HUGE = 2**31 - 1
LIMIT = "limits.podsPerSet"
GANG = "one PodGang would name"


def sized(replicas: int, *cliques: dict[str, Any], **template: Any) -> dict[str, Any]:
    body = bare(*cliques, **template)
    body["spec"]["replicas"] = replicas
    return default_set(body)


ONE = clique("a", 1)
MANY = clique("a", 60_000, minAvailable=1)
GROUPED = {"podCliqueScalingGroups": [group("g", "b", "c", replicas=100)]}
PARTS = (clique("a", 5), clique("b", 2), clique("c", 3))


@pytest.mark.parametrize(
    ("body", "pods", "message"),
    [
        (sized(0, ONE), 0, None),
        (sized(50_000, ONE), 50_000, None),
        (sized(50_001, ONE), 50_001, LIMIT),
        (sized(HUGE, ONE), HUGE, LIMIT),
        (sized(50_000, clique("a", 50_000)), 2_500_000_000, LIMIT),
        (sized(HUGE, clique("a", HUGE)), HUGE**2, LIMIT),
        (sized(10, *PARTS, **GROUPED), 10 * (5 + 100 * 5), None),
        (sized(100, *PARTS, **GROUPED), 100 * (5 + 100 * 5), LIMIT),
        (sized(1, clique("a", 10_000)), 10_000, None),
        (sized(1, clique("a", 50_000)), 50_000, GANG),
        (sized(1, clique("a", 3_000_000)), 3_000_000, GANG),
    ],
)
def test_new_set_above_the_limit_is_refused_with_its_count(body, pods, message):
    verdict = validation.on_create(body, FACTS)
    assert verdict.allowed is (message is None), verdict.message
    assert message is None or message in verdict.message
    assert message is None or f" {pods} pods" in verdict.message


def test_clique_and_group_of_zero_replicas_count_as_one():
    template = sized(1, ONE)["spec"]["template"]
    template["cliques"][0]["spec"]["replicas"] = 0
    template["podCliqueScalingGroups"] = [group("g", "a", replicas=0)]
    verdict = validation.on_create({**sized(1, ONE), "spec": {"replicas": HUGE, "template": template}}, FACTS)
    assert f"asks for {HUGE} pods" in verdict.message


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        (sized(10, ONE), sized(50_000, ONE), True),
        (sized(10, ONE), sized(50_001, ONE), False),
        (sized(60_000, ONE), sized(60_000, ONE), True),
        (sized(60_000, ONE), sized(55_000, ONE), True),
        (sized(60_000, ONE), sized(60_001, ONE), False),
        (sized(1, MANY), sized(1, clique("a", 40_000, minAvailable=1)), True),
        (sized(1, MANY), sized(1, clique("a", 60_001, minAvailable=1)), False),
    ],
)
def test_stored_set_above_the_limit_may_not_scale_out(before, after, allowed):
    after["metadata"]["annotations"] = {"changed": "yes"}
    verdict = validation.on_update(before, after, FACTS)
    assert verdict.allowed is allowed, verdict.message


def test_limit_comes_from_the_configuration():
    facts = replace(FACTS, pods_per_set=10)
    assert validation.on_create(sized(10, ONE), facts).allowed
    message = validation.on_create(sized(11, ONE), facts).message
    assert message.startswith("spec.replicas: Invalid value: 11: the set asks for 11 pods")
    assert "at most 10 are allowed" in message


def test_existing_parts_count_with_their_live_replicas():
    template = validation.decode.workload(sized(1, *PARTS, **GROUPED)).template
    live = {"a": pod_counts.Live(2, 100), "b": pod_counts.Live(150, 150)}
    groups = {"g": pod_counts.Live(2, 3)}
    # a: two of three exist; the group: two of three exist, 3 + 100 replicas; b: 150 are more than those.
    assert pod_counts.of_set(3, template, live, groups) == (100 + 5) + 150 + 103 * 3
