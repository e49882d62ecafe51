"""Which restarts concern the pods of a clique, and which of them a pod was created after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.naming import annotations as keys
from grove.plan.desired.restarts import (
    is_restarted,
    requests_hash,
    restart_requests,
    restart_tokens,
    to_annotation,
)
from grove.plan.desired.template_hash import generation_hash
from tests.plan.builders import a_set, read_set

UNITS = ("all", "all.a", "all.x", "all.x.1", "0", "0.a", "0.x", "0.x.1")


@pytest.mark.parametrize(
    ("unit", "clique", "concerned"),
    [
        ("all", (0, "a"), True),
        ("0", (0, "a"), True),
        ("1", (0, "a"), False),
        ("all.a", (0, "a"), True),
        ("all.x", (0, "a"), False),
        ("0.a", (0, "a", "x", 1), True),
        ("0.x", (0, "a", "x", 1), True),
        ("0.x.1", (0, "a", "x", 1), True),
        ("0.x.0", (0, "a", "x", 1), False),
        ("0.a.1", (0, "a", "x", 1), False),
        ("all.x.1", (7, "a", "x", 1), True),
    ],
)
def test_request_concerns_the_cliques_of_its_unit(unit, clique, concerned):
    assert bool(restart_tokens({unit: "1"}, *clique)) is concerned


def test_other_annotations_request_nothing():
    carried = {keys.RESTARTS: "1", "grove.io/restart": "1", "restart-all": "1", keys.FORCE_DELETE_AFTER: "5m"}
    assert restart_requests(carried) == {}
    assert requests_hash({}) == ""
    assert restart_requests({"grove.io/restart-all": "now"}) == {"all": "now"}


def test_hash_of_a_set_without_requests_is_that_of_its_template():
    body = a_set("a:1")
    before = generation_hash(read_set(body))
    body["metadata"]["annotations"] = {"team": "serving", keys.FORCE_DELETE_AFTER: "5m"}
    assert generation_hash(read_set(body)) == before
    body["metadata"]["annotations"] |= {"grove.io/restart-0": "1"}
    assert generation_hash(read_set(body)) != before


values = st.dictionaries(st.sampled_from(UNITS), st.text(max_size=5), max_size=8)


@given(values)
def test_pod_is_created_after_all_requests_of_its_time(requests):
    tokens = restart_tokens(requests, 0, "a", "x", 1)
    assert len(tokens) == len(requests)
    assert is_restarted(to_annotation(tokens), tokens)


@given(values, st.sampled_from(UNITS), st.text(max_size=5))
def test_only_a_new_value_makes_a_pod_outdated(requests, unit, value):
    """A request that is withdrawn, and one that is repeated, do not."""
    carried = to_annotation(restart_tokens(requests, 0, "a", "x", 1))
    fewer = {key: each for key, each in requests.items() if key != unit}
    assert is_restarted(carried, restart_tokens(fewer, 0, "a", "x", 1))
    later = restart_tokens({**requests, unit: value}, 0, "a", "x", 1)
    assert is_restarted(carried, later) is (requests.get(unit) == value)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8)), values)
def test_any_annotation_of_a_pod_can_be_compared(annotations, requests):
    tokens = restart_tokens(requests, 0, "a")
    assert is_restarted(annotations, tokens) is (not tokens)
    assert is_restarted({**annotations, keys.RESTARTS: "," * 9}, tokens) is (not tokens)
