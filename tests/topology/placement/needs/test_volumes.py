"""The nodes that can use several volumes."""

from __future__ import annotations

from functools import reduce

from grove import timing
from grove.topology.placement.model import Requirement, Term
from grove.topology.placement.needs.volumes import Terms, both

IN_A = Requirement("zone", "In", ("a",))
SSD = Requirement("disk", "In", ("ssd",))


def one_of(key: str, count: int) -> tuple[Term, ...]:
    return tuple(Term((Requirement(key, "In", (str(i),)),)) for i in range(count))


def test_equal_terms_are_not_combined() -> None:
    zones = one_of("zone", 3)
    assert both(zones, one_of("zone", 3)) == zones


def test_expressions_and_terms_of_both_sides_occur_once() -> None:
    assert both((Term((IN_A,)),), (Term((IN_A, SSD)),)) == (Term((IN_A, SSD)),)
    found = both((Term((IN_A,)), Term((IN_A, SSD))), (Term((IN_A, SSD)),))
    assert found == (Term((IN_A, SSD)),)


def test_terms_of_many_volumes_stay_below_the_limit() -> None:
    volumes: list[Terms] = [one_of(f"key-{i}", 3) for i in range(12)]
    found = reduce(both, volumes)
    assert found is not None
    assert 1 < len(found) <= timing.NODE_TERMS
    assert {each.key for each in found[0].expressions} >= {"key-0", "key-1"}


def test_one_term_is_combined_with_any_number() -> None:
    many = one_of("zone", timing.NODE_TERMS + 1)
    found = both(many, (Term((SSD,)),))
    assert found is not None
    assert len(found) == len(many)
    assert all(SSD in term.expressions for term in found)
