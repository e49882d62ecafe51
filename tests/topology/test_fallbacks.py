"""The fallbacks of a set's topology constraint, as templates with another constraint."""

from __future__ import annotations

import pytest

from grove.topology.constraints import domains, topology_name_of
from grove.topology.fallbacks import attempts, fallbacks_of, topology_names, with_fallback
from tests.plan.builders import a_set, read_set
from tests.topology.builders import packed


def template(wishes: str, *fallbacks: dict[str, str], old_spelling: bool = False):
    body = packed(a_set("a b"), wishes, old_spelling=old_spelling)
    body["spec"]["template"].setdefault("topologyConstraint", {})["fallbacks"] = list(fallbacks)
    return read_set(body).spec.template


def aims(found) -> list[tuple[str, str, str]]:
    constraints = [attempt.topology_constraint for attempt in attempts(found)]
    return [(each.topology_name, each.required, each.preferred) for each in constraints]


@pytest.mark.parametrize("old_spelling", [False, True])
def test_fallback_replaces_only_what_it_names(old_spelling):
    found = template(
        "rack/host a:host",
        {"packDomain": "zone"},
        {"topologyName": "other"},
        {"topologyName": "other", "packDomain": "block"},
        old_spelling=old_spelling,
    )
    assert aims(found) == [
        ("racks", "rack", "host"),
        ("racks", "zone", "host"),
        ("other", "rack", "host"),
        ("other", "block", "host"),
    ]
    assert all(attempt.cliques == found.cliques for attempt in attempts(found))
    assert topology_names(found) == {"racks", "other"}


def test_fallback_of_set_that_packs_nothing_itself():
    found = template("a:host", {"topologyName": "other"})
    other = with_fallback(found, 0)
    assert other.topology_constraint.pack is None
    assert (topology_name_of(other), domains(other)) == ("other", {"host"})


def test_attempt_has_no_fallbacks_of_its_own():
    found = template("rack", {"packDomain": "zone"})
    assert [len(fallbacks_of(attempt)) for attempt in attempts(found)] == [1, 0]


def test_fallback_waits_a_minute_by_default():
    first, second = fallbacks_of(template("rack", {"packDomain": "zone"}, {"packDomain": "a", "after": "5s"}))
    assert (first.after, second.after) == ("1m0s", "5s")


def test_set_without_constraint_has_one_attempt():
    found = read_set(a_set("a")).spec.template
    assert list(attempts(found)) == [found]
    assert topology_names(found) == frozenset()
