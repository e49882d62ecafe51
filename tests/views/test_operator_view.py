"""From Leases to the line that says whether an operator leads."""

from __future__ import annotations

import pytest

from grove.api.meta import ObjectMeta
from grove.kube.leader.lease import Lease, LeaseSpec
from grove.views.operator_view import operator_line, operator_view
from tests.views.builders import NOW


def a_lease(namespace: str, holder: str, renewed: str | None) -> Lease:
    spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=15, renew_time=renewed)
    return Lease(ObjectMeta(name="lease", namespace=namespace), spec)


JUST_NOW, BEFORE = "2027-01-15T07:59:50.000000Z", "2027-01-15T07:59:45.000000Z"


@pytest.mark.parametrize(
    ("leases", "line"),
    [
        ([a_lease("a", "me", JUST_NOW)], "me leads, and renewed Lease a/lease 10s ago"),
        (
            [a_lease("a", "me", BEFORE)],
            "none leads, nothing is reconciled: Lease a/lease was not renewed by me since 15s ago",
        ),
        (
            [a_lease("a", "", JUST_NOW)],
            "none leads, nothing is reconciled: Lease a/lease was released 10s ago",
        ),
        (
            [a_lease("a", "me", BEFORE), a_lease("b", "you", JUST_NOW), a_lease("c", "", JUST_NOW)],
            "you leads, and renewed Lease b/lease 10s ago",
        ),
        ([a_lease("a", "me", "9999-12-31T23:59:59.999999Z")], "me leads, and renewed Lease a/lease 0s ago"),
    ],
    ids=["held", "expired", "released", "several", "end of time"],
)
def test_line_names_the_holder_and_the_last_renewal(leases, line):
    assert operator_line(operator_view(leases, NOW), "lease") == f"operator: {line}"


def test_no_lease_is_no_proof_that_none_runs():
    seen = operator_view([], NOW)
    assert not seen.alive
    assert operator_line(seen, "mine").startswith("operator: no Lease mine: none is installed, or it runs")


def test_renewal_is_a_date_and_an_age():
    seen = operator_view([a_lease("a", "me", JUST_NOW)], NOW)
    assert (seen.renewed, seen.renewed_seconds_ago) == (JUST_NOW, 10)
