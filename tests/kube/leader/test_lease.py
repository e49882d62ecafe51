"""When a lease may be acquired, measured on the candidate's own clock; and when leadership ends."""

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
        ([(None, 100.0)], float("-inf")),  # it never existed
        ([(lease("a"), 100.0)], 115.0),  # whatever the times in it, a candidate counts from when it saw it
        ([(lease("a", "2001"), 100.0)], 115.0),
        (
            [(lease("a", duration=60), 100.0)],
            160.0,
        ),  # the duration of the holder counts, not that of the candidate
        ([(lease("a", duration=None), 100.0)], 110.0),
        ([(lease(""), 100.0)], 100.0),  # released
        ([(lease(None), 100.0)], 100.0),
        ([(lease("a"), 100.0), (lease("a"), 109.0)], 115.0),  # the same state again is no renewal
        ([(lease("a"), 100.0), (lease("a", version="2"), 109.0)], 115.0),  # nor is a change of labels
        ([(lease("a"), 100.0), (lease("a", "t2"), 109.0)], 124.0),  # a renewal is
        ([(lease("a"), 100.0), (lease("b"), 109.0)], 124.0),
        ([(lease("a"), 100.0), (None, 109.0)], 119.0),  # deleted: its holder may not have seen it
        ([(lease("a"), 100.0), (None, 109.0), (None, 112.0)], 119.0),
        ([(lease(""), 100.0), (None, 109.0)], 109.0),
    ],
)
def test_lease_is_available_after_it_expires_or_is_released(
    seen: list[tuple[Lease | None, float]], available_at: float
) -> None:
    observed = NEVER_SEEN
    for state, time in seen:
        observed = observed.observe(state, time)
    assert observed.available_at(default_duration=10.0) == available_at


@pytest.mark.parametrize(
    ("known", "acquired", "transitions"),
    [(None, NOW, 0), (lease("other"), NOW, 4), (lease(""), NOW, 4), (lease("me"), "t0", 3)],
    ids=["first", "other holder", "released", "renewed"],
)
def test_held_spec_counts_transitions(known: Lease | None, acquired: str, transitions: int) -> None:
    assert held_spec(known, "me", LeaseTiming(), WALL) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": acquired,
        "renewTime": NOW,
        "leaseTransitions": transitions,
    }


def test_released_spec_keeps_transitions() -> None:
    assert released_spec(lease("me")) == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "leaseTransitions": 3,
    }


@pytest.mark.parametrize("timing", [(15, 15, 2), (15, 10, 10), (10, 15, 2), (15, 10, 0)])
def test_unsafe_lease_timing_is_rejected(timing: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match="retryPeriod < renewDeadline < leaseDuration"):
        LeaseTiming(*timing)


def test_last_write_times_out_before_lease_expires() -> None:
    timing = LeaseTiming(15, 10, 2)
    assert timing.renew_deadline + timing.longest_write < timing.lease_duration


def test_identity_is_unique() -> None:
    assert new_identity() != new_identity()


@virtual_time
async def test_leadership_ends_at_deadline_or_by_end() -> None:
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
