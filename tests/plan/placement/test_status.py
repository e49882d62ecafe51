"""Where a gang is, from the labels of the nodes of its bound pods."""

from __future__ import annotations

import pytest

from grove.api.meta import ObjectMeta
from grove.api.types.podgang import (
    GangPlacement,
    GangTopologyConstraint,
    NamespacedName,
    PackConstraint,
    PlacedUnit,
    PodGang,
    PodGangSpec,
    PodGangStatus,
    PodGroup,
    TopologyConstraintGroup,
)
from grove.plan.placement.status import with_placement
from grove.topology.constraints import ResolvedTopology

LEVELS = ("block", "rack", "host")
TOPOLOGY = ResolvedTopology("fabric", {level: level for level in LEVELS}, found=True)


def constraint(required: str = "", preferred: str = "") -> GangTopologyConstraint:
    return GangTopologyConstraint(PackConstraint(required, preferred))


def gang(**constraints: GangTopologyConstraint) -> PodGang:
    """Cliques `a` and `b` of two pods each, both in the group replica `g`, with constraints by unit."""
    groups = tuple(
        PodGroup(
            name,
            tuple(NamespacedName("ns", f"{name}{number}") for number in range(2)),
            2,
            constraints.get(name),
        )
        for name in ("a", "b")
    )
    configs = (TopologyConstraintGroup("g", ("a", "b"), constraints["g"]),) if "g" in constraints else ()
    spec = PodGangSpec(groups, constraints.get("gang"), configs)
    return PodGang(metadata=ObjectMeta("gang"), spec=spec)


def nodes(**paths: str) -> dict[str, dict[str, str]]:
    """Labels by pod, such as `a0="b1/r1/h1"`; a level without a value has no label."""
    return {
        pod: {level: value for level, value in zip(LEVELS, path.split("/"), strict=False) if value}
        for pod, path in paths.items()
    }


TOGETHER = nodes(a0="b1/r1/h1", a1="b1/r1/h1", b0="b1/r1/h2", b1="b1/r1/h2")
ONE_AWAY = nodes(a0="b1/r1/h1", a1="b1/r1/h1", b0="b1/r1/h2", b1="b1/r2/h3")
SAME_NAME = nodes(a0="b1/r1/h1", a1="b1/r1/h1", b0="b1/r1/h2", b1="b2/r1/h3")
UNLABELLED = nodes(a0="b1/r1/h1", a1="b1/r1/h1", b0="b1/r1/h2", b1="b1//h3")
NOT_BOUND = nodes(a0="b1/r1/h1", a1="b1/r1/h1")
NO_BLOCK = nodes(a0="/r1/h1", a1="/r1/h1", b0="/r1/h2", b1="/r1/h2")
ALL_UNLABELLED = nodes(a0="b1", a1="b1", b0="b1", b1="b1")
RACK, NEAR = constraint("rack"), constraint(preferred="rack")
ROWS = [
    # constraints, nodes; units as name/key/domain, required met, preferred met, score
    ({}, ONE_AWAY, [], True, True, 1.0),
    ({"gang": RACK}, TOGETHER, ["gang/rack/r1"], True, True, 1.0),
    ({"gang": RACK}, ONE_AWAY, ["gang/rack/r1"], False, True, 1.0),
    ({"gang": RACK}, SAME_NAME, ["gang/rack/r1"], False, True, 1.0),
    ({"gang": RACK}, UNLABELLED, ["gang/rack/r1"], False, True, 1.0),
    ({"gang": RACK}, NOT_BOUND, ["gang/rack/r1"], True, True, 1.0),
    ({"gang": RACK}, NO_BLOCK, ["gang/rack/r1"], False, True, 1.0),
    ({"gang": NEAR}, TOGETHER, ["gang/rack/r1"], True, True, 1.0),
    ({"gang": NEAR}, ONE_AWAY, ["gang/rack/r1"], True, False, 0.75),
    ({"gang": NEAR}, SAME_NAME, ["gang/rack/r1"], True, False, 0.75),
    ({"gang": NEAR}, UNLABELLED, ["gang/rack/r1"], True, False, 0.75),
    ({"gang": NEAR}, ALL_UNLABELLED, ["gang/rack/"], True, False, 0.0),
    ({"gang": constraint("block", "rack")}, ONE_AWAY, ["gang/block/b1"], True, False, 0.75),
    ({"a": RACK, "b": RACK}, ONE_AWAY, ["a/rack/r1", "b/rack/r1"], False, True, 1.0),
    ({"a": NEAR, "b": NEAR}, ONE_AWAY, ["a/rack/r1", "b/rack/r1"], True, False, 0.75),
    ({"a": NEAR, "b": RACK}, NOT_BOUND, ["a/rack/r1"], True, True, 1.0),
    ({"g": RACK, "gang": constraint("block")}, ONE_AWAY, ["gang/block/b1", "g/rack/r1"], False, True, 1.0),
    ({"gang": constraint("zone")}, TOGETHER, ["gang/zone/"], False, True, 1.0),
]


@pytest.mark.parametrize(("constraints", "at", "units", "required", "preferred", "score"), ROWS)
def test_placement_of_bound_pods(
    constraints: dict[str, GangTopologyConstraint],
    at: dict[str, dict[str, str]],
    units: list[str],
    required: bool,
    preferred: bool,
    score: float,
) -> None:
    found = with_placement(PodGangStatus(), gang(**constraints), TOPOLOGY, at)
    placed = tuple(PlacedUnit(*unit.split("/")) for unit in units)
    assert found.placement == GangPlacement("fabric", None, placed, required, preferred)
    assert found.placement_score == score


def test_gang_without_bound_pods_has_no_placement() -> None:
    known = PodGangStatus(placement=GangPlacement("fabric"), placement_score=1.0)
    assert with_placement(known, gang(gang=RACK), TOPOLOGY, {}) == PodGangStatus()


def test_score_of_another_scheduler_is_kept() -> None:
    known = PodGangStatus(placement_score=0.5)
    assert with_placement(known, gang(gang=RACK), TOPOLOGY, {}) == known


def test_equal_shares_name_the_first_domain() -> None:
    halves = nodes(a0="b1/r2/h1", a1="b1/r2/h1", b0="b1/r1/h2", b1="b1/r1/h2")
    found = with_placement(PodGangStatus(), gang(gang=NEAR), TOPOLOGY, halves)
    assert found.placement is not None
    assert [unit.domain for unit in found.placement.units] == ["r1"]
    assert found.placement_score == 0.5
