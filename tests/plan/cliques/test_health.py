"""The health of cliques and groups, from the counts of their pods."""

from __future__ import annotations

import pytest

from grove.plan.cliques.health import CliqueHealth, by_replica, group_health
from grove.plan.desired.expand import expand
from grove.plan.members.counts import PodCounts
from tests.plan.builders import a_set, read_set

HEALTH = {
    "r": PodCounts(replicas=2, ready=2, scheduled=2, updated=2),
    "o": PodCounts(replicas=2, ready=2, scheduled=2),
    "s": PodCounts(replicas=2, scheduled=2, updated=2),
    "u": PodCounts(replicas=2, scheduled=2, unhealthy=2, updated=2),
    "g": PodCounts(replicas=2, gated=2, updated=2),
}
"""Ready; ready and outdated; scheduled and not started; scheduled and unhealthy; gated."""


def healths(group: str, words: str) -> list[CliqueHealth]:
    """The cliques of a group whose replicas have two cliques each: `rr gu` are those of two replicas."""
    layout = expand(read_set(a_set("a:2/2 b:2/2 c:2/2", f"x:{group}=b,c")), 0, {}, {})
    inside = [clique for clique in layout.cliques if clique.group is not None]
    counts = [HEALTH[letter] for letter in words.replace(" ", "")]
    return [CliqueHealth(clique, count) for clique, count in zip(inside, counts, strict=True)]


ROWS = {
    # group: cliques of its replicas; healthy, breached, scheduled, available, updated
    "all ready": ("2/2", "rr rr", 2, False, 2, 2, 2),
    "one outdated": ("2/2", "rr ro", 2, False, 2, 2, 1),
    "not started yet": ("2/2", "rr rs", 2, False, 2, 1, 1),
    "unhealthy clique": ("2/2", "rr ru", 1, True, 2, 1, 1),
    "gated clique": ("2/2", "gr rr", 1, True, 1, 1, 1),
    "enough without it": ("3/2", "rr uu rr", 2, False, 3, 2, 2),
    "too few": ("3/2", "gg uu rr", 1, True, 2, 1, 1),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_group_health_counts_its_replicas(row):
    counts, words, healthy, breached, scheduled, available, updated = row
    cliques = healths(counts, words)
    assert cliques[0].wanted.group is not None
    health = group_health(cliques[0].wanted.group, cliques)
    assert (health.healthy, health.breached) == (healthy, breached)
    assert (health.scheduled_replicas, health.available_replicas) == (scheduled, available)
    assert health.updated_replicas == updated
    assert health.available == (available >= health.needed)


def test_group_scaled_to_zero_is_available():
    layout = expand(read_set(a_set("a:2/2 b:2/2", "x:2/2=b")), 0, {"wl-0-x": 0}, {})
    (group,) = layout.groups
    health = group_health(group, ())
    assert (health.needed, health.breached, health.available) == (0, False, True)


def test_cliques_of_other_groups_are_left_out():
    layout = expand(read_set(a_set("a:1 b:1 c:1", "x:2/1=b y:1/1=c")), 0, {}, {})
    views = [CliqueHealth(clique, PodCounts()) for clique in layout.cliques]
    grouped = by_replica(views, "wl-0-x")
    assert {replica: [view.wanted.name for view in inside] for replica, inside in grouped.items()} == {
        0: ["wl-0-x-0-b"],
        1: ["wl-0-x-1-b"],
    }
