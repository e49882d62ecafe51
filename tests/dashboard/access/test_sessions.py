"""Sessions: how long they last, how many there are, and what is kept of them."""

from __future__ import annotations

import pytest

from grove import timing
from grove.dashboard.access.sessions import Sessions
from grove.dashboard.rights import User
from tests.dashboard.access.test_rate_limiter import Clock

JANE = User("jane")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock)


def test_session_is_found_by_its_identifier_only(sessions: Sessions) -> None:
    identifier = sessions.begin("token", JANE)
    found = sessions.find(identifier)
    assert found is not None
    assert (found.token, found.user) == ("token", JANE)
    assert len(identifier) >= 43, "256 bits"
    for other in ("", identifier[:-1], identifier + "x", "\ud800", sessions.begin("token", JANE)[:-1]):
        assert sessions.find(other) is None


def test_identifier_is_not_kept(sessions: Sessions) -> None:
    identifier = sessions.begin("token", JANE)
    assert identifier.encode() not in b"".join(sessions._sessions)


def test_session_ends_when_it_is_not_used(sessions: Sessions, clock: Clock) -> None:
    identifier = sessions.begin("token", JANE)
    clock.now += timing.SESSION_IDLE - 1
    found = sessions.find(identifier)
    assert found is not None
    clock.now += timing.SESSION_IDLE
    assert not found.ended.is_set()
    assert sessions.find(identifier) is None
    assert found.ended.is_set()
    assert len(sessions) == 0


def test_session_ends_after_its_lifetime_however_used(sessions: Sessions, clock: Clock) -> None:
    identifier = sessions.begin("token", JANE)
    while clock.now < timing.SESSION_LIFETIME:
        assert sessions.find(identifier) is not None
        clock.now += timing.SESSION_IDLE / 2
    assert sessions.find(identifier) is None


def test_signed_out_session_is_over(sessions: Sessions) -> None:
    identifier = sessions.begin("token", JANE)
    found = sessions.find(identifier)
    sessions.end(identifier)
    sessions.end(identifier)
    assert found is not None
    assert found.ended.is_set()
    assert sessions.find(identifier) is None


def test_user_with_too_many_sessions_loses_their_oldest(sessions: Sessions) -> None:
    other = sessions.begin("token", User("john"))
    own = [sessions.begin("token", JANE) for _ in range(timing.SESSIONS_PER_USER)]
    sessions.find(own[0])
    sessions.begin("token", JANE)
    assert sessions.find(own[1]) is None
    assert sessions.find(own[0]) is not None
    assert sessions.find(other) is not None


def test_number_of_sessions_is_bounded(sessions: Sessions) -> None:
    first = sessions.begin("token", User("first"))
    for number in range(timing.SESSIONS):
        sessions.begin("token", User(f"user-{number}"))
    assert len(sessions) == timing.SESSIONS
    assert sessions.find(first) is None


def test_sessions_that_are_over_make_room(sessions: Sessions, clock: Clock) -> None:
    for number in range(10):
        sessions.begin("token", User(f"user-{number}"))
    clock.now += timing.SESSION_IDLE
    sessions.begin("token", JANE)
    assert len(sessions) == 1


def test_tenant_does_not_end_the_sessions_of_others(sessions: Sessions) -> None:
    first = sessions.begin("token", JANE)
    for number in range(timing.SESSIONS * 2):
        sessions.begin("token", User(f"system:serviceaccount:a:robot-{number}"))
    assert len(sessions) == timing.SESSIONS_PER_TENANT + 1
    assert sessions.find(first) is not None
