"""Who may take the lease, and when: judged on the candidate's own clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from grove.api.meta import ObjectMeta
from grove.kube.errors import ConfigError
from grove.kube.leader.leadership import Leadership, LeadershipLost
from grove.kube.leader.lease import (
    Lease,
    LeaseSpec,
    LeaseTiming,
    ObservedLease,
    held_spec,
    new_identity,
    released_spec,
)
from grove.kube.testing.virtual_time import virtual_time

WALL = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
NOW = "2026-01-02T03:04:05.678901Z"


def lease(holder: str | None, renewed: str = "t1", duration: int | None = 15, version: str = "1") -> Lease:
    spec = LeaseSpec(holder, duration, "t0", renewed, 3)
    return Lease(ObjectMeta(name="l", resource_version=version), spec)


NEVER_SEEN = ObservedLease(None, float("-inf"))


@pytest.mark.parametrize(
    ("seen", "available_at"),
    [
        ([(None, 100.0)], float("-inf")),  # there never was one
        ([(lease("a"), 100.0)], 115.0),  # whatever its own times say, we count from when we saw it
        ([(lease("a", "2001"), 100.0)], 115.0),
        ([(lease("a", duration=60), 100.0)], 160.0),  # the holder's own duration counts, not ours
        ([(lease("a", duration=None), 100.0)], 110.0),
        ([(lease(""), 100.0)], 100.0),  # released
        ([(lease(None), 100.0)], 100.0),
        ([(lease("a"), 100.0), (lease("a"), 109.0)], 115.0),  # the same state again is no sign of life
        ([(lease("a"), 100.0), (lease("a", version="2"), 109.0)], 115.0),  # nor is a label put on it
        ([(lease("a"), 100.0), (lease("a", "t2"), 109.0)], 124.0),  # a renewal is
        ([(lease("a"), 100.0), (lease("b"), 109.0)], 124.0),
        ([(lease("a"), 100.0), (None, 109.0)], 119.0),  # deleted: its holder may not know
        ([(lease("a"), 100.0), (None, 109.0), (None, 112.0)], 119.0),
        ([(lease(""), 100.0), (None, 109.0)], 109.0),
    ],
)
def test_a_lease_is_free_when_nobody_can_believe_to_hold_it(
    seen: list[tuple[Lease | None, float]], available_at: float
) -> None:
    sighting = NEVER_SEEN
    for state, moment in seen:
        sighting = sighting.observe(state, moment)
    assert sighting.available_at(default_duration=10.0) == available_at


@pytest.mark.parametrize(
    ("known", "acquired", "transitions"),
    [(None, NOW, 0), (lease("other"), NOW, 4), (lease(""), NOW, 4), (lease("me"), "t0", 3)],
    ids=["first", "taken over", "released", "renewed"],
)
def test_a_claim_says_since_when_and_how_often_it_changed_hands(
    known: Lease | None, acquired: str, transitions: int
) -> None:
    assert held_spec(known, "me", LeaseTiming(), WALL) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": acquired,
        "renewTime": NOW,
        "leaseTransitions": transitions,
    }


def test_a_release_names_nobody_and_forgets_no_history() -> None:
    assert released_spec(lease("me")) == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "leaseTransitions": 3,
    }


@pytest.mark.parametrize("timing", [(15, 15, 2), (15, 10, 10), (10, 15, 2), (15, 10, 0)])
def test_times_that_cannot_be_safe_are_refused(timing: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match="retryPeriod < renewDeadline < leaseDuration"):
        LeaseTiming(*timing)


def test_a_write_sent_at_the_last_moment_is_given_up_before_the_lease_can_pass_on() -> None:
    timing = LeaseTiming(15, 10, 2)
    assert timing.renew_deadline + timing.longest_write < timing.lease_duration


def test_every_process_has_an_identity_of_its_own() -> None:
    assert new_identity() != new_identity()


@virtual_time
async def test_leadership_ends_by_the_clock_or_for_good() -> None:
    now = 100.0
    term = Leadership(clock=lambda: now)
    with pytest.raises(LeadershipLost, match="never won"):
        term.check()
    term.extend(110.0)
    term.check()
    now = 110.0
    with pytest.raises(LeadershipLost, match="not renewed in time"):
        term.check()
    term.extend(120.0)
    term.check()
    term.end("b holds the lease")
    term.end("a later reason")
    term.extend(1e9)
    assert not term.held
    assert await term.ended() == "b holds the lease"
    with pytest.raises(LeadershipLost):
        term.check()
