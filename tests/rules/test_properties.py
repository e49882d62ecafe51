"""Properties of defaulting and validation that hold for every object, valid or not."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grove.rules import cluster_topology
from grove.rules.model import AdmissionResult
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.rules.podcliqueset.startup_order import cycles
from tests.rules.builders import FACTS, bare, changed, clique, group, workload
from tests.rules.messages import CLAIMS, CONSTRAINED, ON_KAI, sharing

quick = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)

FIELDS = st.sampled_from(
    [
        "metadata",
        "name",
        "labels",
        "annotations",
        "spec",
        "replicas",
        "template",
        "cliques",
        "podSpec",
        "containers",
        "env",
        "startsAfter",
        "minAvailable",
        "autoScalingConfig",
        "minReplicas",
        "maxReplicas",
        "podCliqueScalingGroups",
        "cliqueNames",
        "scaleConfig",
        "topologyConstraint",
        "pack",
        "required",
        "fallbacks",
        "packDomain",
        "after",
        "resourceSharing",
        "filter",
        "terminationDelay",
        "levels",
        "domain",
        "key",
        "roleName",
    ]
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["a", "decode", "h100", "rack", "\ud800", "4h", "CliqueStartupTypeExplicit", 10**400])
)
ANYTHING = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(FIELDS | st.text(max_size=3) | st.integers(), inner)
    ),
    max_leaves=20,
)


def all_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in an object."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for step, inner in steps for each in all_paths(inner, (*path, step)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at one path."""
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = replaced(value[path[0]], path[1:], new)
    return copied


RICH = workload(
    cliqueStartupType="CliqueStartupTypeExplicit",
    resourceClaimTemplates=CLAIMS,
    resourceSharing=sharing(filter={"childCliqueNames": ["router"]}),
    topologyConstraint=next(iter(CONSTRAINED.values())),
)
RICH = changed(RICH, ON_KAI)
RICH["spec"]["template"]["cliques"][2]["spec"]["startsAfter"] = ["router", "prefill"]
RICH["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"minReplicas": 2, "maxReplicas": 3}
PATHS = all_paths(RICH)
MUTATED = st.builds(lambda path, value: replaced(RICH, path, value), st.sampled_from(PATHS), ANYTHING)


def verdicts(body: Any) -> list[AdmissionResult]:
    return [
        validation.on_create(body, FACTS),
        validation.on_update(RICH, body, FACTS),
        validation.on_update(body, RICH, FACTS),
        cluster_topology.on_create(body, FACTS),
        cluster_topology.on_update(body, body, FACTS),
    ]


def test_object_that_is_mutated_below_is_valid():
    assert validation.on_create(RICH, FACTS).message == ""
    assert validation.on_update(RICH, RICH, FACTS).message == ""


@quick
@given(body=ANYTHING | MUTATED)
def test_validation_never_raises_and_errors_have_paths(body):
    validation.topologies_named(body)
    for verdict in verdicts(body):
        assert all(error.path and str(error).startswith(error.path) for error in verdict.errors)
        assert verdict.allowed == (verdict.message == "")


@quick
@given(body=ANYTHING | MUTATED, old=ANYTHING | MUTATED)
def test_defaulting_is_idempotent(body, old):
    for stored in (None, old):
        done = default_set(body, stored)
        assert default_set(done, stored) is done


@quick
@given(body=MUTATED)
def test_accepted_set_passes_an_update_without_changes(body):
    if validation.on_create(default_set(body), FACTS).allowed:
        done = default_set(body)
        assert validation.on_update(done, done, FACTS).message == ""


def work(body: Any) -> int:
    """How many calls defaulting and validation take: a measure of time that does not depend on the
    machine."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        done = default_set(body)
        validation.on_create(done, FACTS)
        validation.on_update(done, done, FACTS)
    finally:
        sys.setprofile(None)
    return calls


def explicit(*cliques, **template):
    return bare(*cliques, cliqueStartupType="CliqueStartupTypeExplicit", **template)


SHAPES = {
    "many cliques": lambda n: bare(*(clique(f"c{i}") for i in range(n))),
    "duplicate names": lambda n: bare(*(clique("a") for _ in range(n))),
    "a chain": lambda n: explicit(*(clique(f"c{i}", startsAfter=[f"c{i + 1}"]) for i in range(n))),
    "one cycle": lambda n: explicit(*(clique(f"c{i}", startsAfter=[f"c{(i + 1) % n}"]) for i in range(n))),
    "many cycles": lambda n: explicit(*(clique(f"c{i}", startsAfter=[f"c{i ^ 1}"]) for i in range(n))),
    "many groups": lambda n: bare(
        *(clique(f"c{i}") for i in range(n)),
        podCliqueScalingGroups=[group(f"g{i}", f"c{i}") for i in range(n)],
    ),
    "one large group": lambda n: bare(
        *(clique(f"c{i}") for i in range(n)),
        podCliqueScalingGroups=[group("g", *(f"c{i}" for i in range(n)))],
    ),
    "many variables": lambda n: bare(
        clique("a", podSpec={"containers": [{"env": [{"name": "A"}, {"name": "="}] * n}]})
    ),
    "many wrong types": lambda n: bare(*range(n)),
    "many filters": lambda n: bare(
        clique("a"), resourceSharing=sharing(filter={"childCliqueNames": ["x"] * n})
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_work_is_linear_in_the_size_of_the_object(shape):
    small, large = work(shape(100)), work(shape(400))
    assert large < 4.5 * small


def test_ten_thousand_cliques_are_validated():
    body = default_set(SHAPES["many groups"](10_000))
    verdict = validation.on_create(body, FACTS)
    assert [error.path for error in verdict.errors] == ["spec.template.cliques"], "a PodGang cannot name them"
    error, *_ = validation.on_create(default_set(SHAPES["one cycle"](10_000)), FACTS).errors
    assert error.detail == "circular dependencies: c0 -> c1 -> c2 -> c3 -> c4 -> c5 -> c6 -> c7 -> ... -> c0"


@quick
@given(st.dictionaries(st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefgh"), max_size=4)))
def test_cycle_found_exactly_if_some_clique_never_starts(after):
    """Compared with a simulation that starts all cliques without pending parents until none is left."""
    waiting = {name: {p for p in parents if p in after and p != name} for name, parents in after.items()}
    while ready := [name for name, parents in waiting.items() if not parents]:
        waiting = {name: parents - set(ready) for name, parents in waiting.items() if name not in ready}
    found = cycles(after)
    assert bool(found) == bool(waiting)
    for cycle in found:
        assert len(cycle) > 1
        for name, parent in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert parent in after[name]
