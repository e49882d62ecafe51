"""Nested topology constraints: `inverted` finds exactly what admission rejects in a new set."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grove.rules import decode
from grove.rules.model import Facts
from grove.rules.podcliqueset import topology_constraints
from grove.rules.podcliqueset.defaults import default_set
from grove.topology.nesting import inverted, nestings
from tests.plan.builders import a_set, read_set
from tests.topology.builders import NAME, packed

LEVELS = ("zone", "rack", "host")


def found(wishes: str) -> list[str]:
    return [str(each) for each in nestings(read_set(packed(a_set("a b c", "x:1=b"), wishes)).spec.template)]


def test_nestings_of_set_groups_and_cliques():
    assert found("zone/rack x:rack/host a:rack b:host c:/host") == [
        "PodCliqueSet asks for zone, and PodCliqueScalingGroup 'x' in it for rack",
        "PodCliqueSet asks for rack, and PodCliqueScalingGroup 'x' in it for host",
        "PodCliqueSet asks for zone, and PodClique 'a' in it for rack",
        "PodCliqueSet asks for zone, and PodClique 'b' in it for host",
        "PodCliqueScalingGroup 'x' asks for rack, and PodClique 'b' in it for host",
        "PodCliqueSet asks for rack, and PodClique 'c' in it for host",
    ]
    assert found("x:rack a:host") == []


def test_missing_domain_is_not_inverted():
    template = read_set(packed(a_set("a"), "zone a:rack")).spec.template
    assert inverted(nestings(template), ("rack",)) == []
    assert len(inverted(nestings(template), ("rack", "zone"))) == 1


wishes = st.builds(
    lambda whole, parts: " ".join([whole, *(f"{part}:{how}" for part, how in parts.items())]),
    st.sampled_from(LEVELS),
    st.dictionaries(
        st.sampled_from(["x", "a", "b"]),
        st.builds("{}/{}".format, st.sampled_from(LEVELS), st.sampled_from(["", *LEVELS])),
    ),
)


@settings(max_examples=200, deadline=None)
@given(wishes, st.permutations(LEVELS))
def test_inverted_matches_what_admission_rejects(wishes, levels):
    body = packed(a_set("a b", "x:1=b"), wishes)
    inversions = inverted(nestings(read_set(body).spec.template), levels)
    facts = Facts(topology_aware=True, topologies={NAME: tuple(levels)})
    refused = topology_constraints.on_create(decode.workload(default_set(body)), facts)
    assert len(inversions) == len(refused)
