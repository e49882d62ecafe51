"""Sets in which claims of different parts could get the same name are refused."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove.api.types.common import SharingScope
from grove.plan.desired.expand import expand
from grove.plan.desired.shared_claims import clique_claims, group_claims, replica_claims, set_claims
from grove.rules import decode
from grove.rules.claims import claim_names
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.plan.builders import a_set, read_set
from tests.rules.builders import FACTS, changed, workload
from tests.rules.messages import C, G, T, sharing

ALL, ONE = (scope.value for scope in (SharingScope.ALL_REPLICAS, SharingScope.PER_REPLICA))


def conflict(path: str, template: str, other: str, name: str) -> str:
    return (
        f'{path}.resourceSharing[0].name: Invalid value: "{template}": claims of '
        f"{other}.resourceSharing[0].name can have the same name, such as {name}: rename one of the templates"
    )


def shares(*parts: tuple[str, str, str]) -> dict[str, object]:
    return {f"{path}.resourceSharing": sharing(name=name, scope=scope) for path, name, scope in parts}


MEMBER = f"{T}.cliques[2]"
ROWS = [
    (shares((T, "router-all-t", ONE), (C, "t", ALL)), [conflict(C, "t", T, "app-0-router-all-t")]),
    # the number can be the index of a pod
    (shares((T, "router-3-t", ONE), (C, "t", ONE)), [conflict(C, "t", T, "app-0-router-3-t")]),
    (
        shares((G, "decode-all-t", ONE), (MEMBER, "t", ALL)),
        [conflict(MEMBER, "t", G, "app-0-engine-0-decode-all-t")],
    ),
    (shares((T, "router-03-t", ONE), (C, "t", ONE)), []),
    (shares((T, "router-all-t", ALL), (C, "t", ALL)), []),
    (shares((T, "t", ALL), (C, "t", ALL), (G, "t", ALL)), []),
]


@pytest.mark.parametrize(("changes", "errors"), ROWS)
def test_name_conflict_names_both_entries(changes, errors):
    body = changed(workload(), changes)
    assert list(map(str, validation.on_create(body, FACTS).errors)) == errors
    assert validation.on_update(body, body, FACTS).allowed, "a stored set is not refused"


TEMPLATES = ("t", "a-all-t", "a-1-t", "b-0-t", "x-0-t", "x-1-b-all-t", "1-t", "all-t", "x-all-t")
entry = st.tuples(st.sampled_from(TEMPLATES), st.sampled_from((ALL, ONE)))
entries = st.lists(entry, max_size=2, unique_by=lambda each: each[0])


@settings(max_examples=300, deadline=None)
@given(entries, entries, entries, entries)
def test_accepted_sets_have_unique_claim_names(of_set, of_x, of_a, of_b):
    body = a_set("a:2 b:2", "x:2/2=b", replicas=2)
    template = body["spec"]["template"]
    parts = (template, *template["podCliqueScalingGroups"], *template["cliques"])
    for part, shared in zip(parts, (of_set, of_x, of_a, of_b), strict=True):
        part["resourceSharing"] = [{"name": name, "scope": scope} for name, scope in shared]
    refused = list(claim_names.errors(decode.workload(default_set(body))))
    assert bool(refused) == any(count > 1 for count in Counter(_claims(body)).values())


def _claims(body) -> list[str]:
    known = read_set(body)
    found = list(set_claims(known))
    for index in range(2):
        expanded = expand(known, index, {}, {})
        found += replica_claims(known, index)
        for group in expanded.groups:
            found += group_claims(known, group)
        for clique in expanded.cliques:
            found += clique_claims(known, clique, range(2))
    return [claim.name for claim in found]
