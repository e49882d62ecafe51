"""The domains that a set is in, and the replica that is in the domain of a name."""

from __future__ import annotations

import pytest

from grove.fabrics.membership import membership_in, memberships
from tests.fabrics.builders import BOTH, a_set, clique

GROUP = {"name": "model", "cliqueNames": ["worker"], "replicas": 2, "minAvailable": 1}
SETS = {
    "auto": a_set(clique("worker"), auto="enabled"),
    "group": a_set(clique("worker"), group="a-0"),
    "shared": a_set(clique("worker", computedomain="team")),
    "replica": a_set(clique("worker", computedomain="team-1", scope="replica")),
    "member": a_set(clique("worker", computedomain="team", scope="scaling-group-replica"), groups=[GROUP]),
}
EXPECTED = {
    "auto": {"inference-0": (0,), "inference-1": (1,)},
    "group": {"inference-0-a-0": (0,), "inference-1-a-0": (1,)},
    "shared": {"team": (0, 1)},
    "replica": {"team-1-0": (0,), "team-1-1": (1,)},
    "member": {"team-0-0": (0,), "team-0-1": (0,), "team-0-2": (0,), "team-1-0": (1,)},
}


def live(replica: int, group: str) -> int:
    """X11: an existing group counts with its own replicas."""
    assert group == "model"
    return 3 if replica == 0 else 1


@pytest.mark.parametrize("kind", SETS)
def test_membership_is_found_from_domain_name(kind):
    found = memberships(SETS[kind], BOTH, live)
    assert {name: membership.replicas for (_, name), membership in found.items()} == EXPECTED[kind]
    for (vendor, name), membership in found.items():
        back = membership_in(SETS[kind], BOTH, vendor, name, live)
        assert (back.requirement, back.replicas) == (membership.requirement, membership.replicas[:1])


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(
    "name",
    ["inference", "inference-2", "inference-00", "team-1-2", "team-1", "team-0-3", "x", "inference-0-b"],
)
def test_other_names_have_no_membership(kind, name):
    if name not in EXPECTED[kind]:
        assert membership_in(SETS[kind], BOTH, "nvidia", name, live) is None
        assert membership_in(SETS[kind], BOTH, "example", name, live) is None
