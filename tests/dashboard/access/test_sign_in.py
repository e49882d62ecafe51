"""Sign-in: tokens, sessions, what ends them, and attempts that are limited."""

from __future__ import annotations

import asyncio

import pytest

from grove import timing
from grove.dashboard.access.caller import Presented
from grove.dashboard.access.errors import NotSignedIn, ReviewUnavailable, TooMany
from grove.dashboard.access.rights_reviewer import SHOWN
from grove.dashboard.access.token_reviewer import is_token
from grove.dashboard.rights import Rights
from grove.explanation.reading import GRAPHS, SETS
from tests.dashboard.access.reviews import Reviews

PEER = "10.0.0.1"


@pytest.fixture
def reviews() -> Reviews:
    reviews = Reviews("a")
    reviews.may_list = {("*", "")}
    return reviews


def shown(session: str = "", bearer: str = "") -> Presented:
    return Presented(PEER, session, bearer)


async def test_session_has_the_user_and_rights(reviews: Reviews) -> None:
    session = await reviews.access.sign_in("good", PEER)
    caller = await reviews.access.caller(shown(session))
    assert (caller.user, caller.rights) == ("jane", Rights())
    again = await reviews.access.sign_in("good", PEER)
    assert (await reviews.access.caller(shown(again))).key == caller.key, "limits are those of the user"


async def test_token_in_a_header_needs_no_session(reviews: Reviews) -> None:
    assert (await reviews.access.caller(shown(bearer="good"))).user == "jane"


@pytest.mark.parametrize("presented", [shown(), shown(session="x"), shown(bearer="bad"), shown(bearer="a b")])
async def test_other_senders_are_not_signed_in(reviews: Reviews, presented: Presented) -> None:
    with pytest.raises(NotSignedIn):
        await reviews.access.caller(presented)


async def test_invalid_token_begins_no_session(reviews: Reviews) -> None:
    with pytest.raises(NotSignedIn) as error:
        await reviews.access.sign_in("bad", PEER)
    assert "kubectl create token" in error.value.message


async def test_signed_out_session_has_no_user(reviews: Reviews) -> None:
    session = await reviews.access.sign_in("good", PEER)
    ended = reviews.access.ended(shown(session))
    assert not ended.is_set()
    reviews.access.sign_out(session)
    assert ended.is_set()
    assert reviews.access.ended(shown(session)).is_set()
    with pytest.raises(NotSignedIn):
        await reviews.access.caller(shown(session))


async def test_revoked_token_ends_the_session(reviews: Reviews) -> None:
    session = await reviews.access.sign_in("good", PEER)
    ended = reviews.access.ended(shown(session))
    del reviews.users["good"]
    reviews.clock.now += timing.ACCESS_GRANTED_KEPT
    with pytest.raises(NotSignedIn):
        await reviews.access.caller(shown(session))
    assert ended.is_set()
    reviews.users["good"] = "jane"
    reviews.clock.now += timing.ACCESS_DENIED_KEPT
    with pytest.raises(NotSignedIn):
        await reviews.access.caller(shown(session))


async def test_api_server_that_is_away_grants_nothing_and_ends_nothing(reviews: Reviews) -> None:
    session = await reviews.access.sign_in("good", PEER)
    reviews.clock.now += timing.ACCESS_GRANTED_KEPT
    reviews.down = True
    for presented in (shown(session), shown(bearer="other")):
        with pytest.raises(ReviewUnavailable):
            await reviews.access.caller(presented)
    with pytest.raises(ReviewUnavailable):
        await reviews.access.sign_in("good", PEER)
    reviews.down = False
    assert (await reviews.access.caller(shown(session))).user == "jane"


async def test_attempts_of_a_peer_are_limited(reviews: Reviews) -> None:
    for number in range(timing.SIGN_IN_RATE[0]):
        with pytest.raises(NotSignedIn):
            await reviews.access.caller(shown(bearer=f"bad-{number}"))
    asked = len(reviews.asked)
    with pytest.raises(TooMany):
        await reviews.access.caller(shown(bearer="bad"))
    with pytest.raises(TooMany):
        await reviews.access.sign_in("bad", PEER)
    assert len(reviews.asked) == asked
    await reviews.access.sign_in("good", "10.0.0.2")


async def test_known_token_is_no_attempt(reviews: Reviews) -> None:
    for _ in range(timing.SIGN_IN_RATE[0] * 3):
        await reviews.access.caller(shown(bearer="good"))
    assert len([each for each in reviews.asked if "token" in each]) == 1


async def test_requests_at_once_with_one_token_are_one_attempt(reviews: Reviews) -> None:
    for _ in range(3):
        callers = (reviews.access.caller(shown(bearer="good")) for _ in range(timing.SIGN_IN_RATE[0] * 2))
        assert {each.user for each in await asyncio.gather(*callers)} == {"jane"}
        reviews.clock.now += timing.ACCESS_GRANTED_KEPT
    assert len([each for each in reviews.asked if "token" in each]) == 3


async def test_cancelled_request_does_not_end_the_review_of_others(reviews: Reviews) -> None:
    first, second = (asyncio.create_task(reviews.access.caller(shown(bearer="good"))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).user == "jane"


@pytest.mark.parametrize(
    ("text", "valid"),
    [("a.b-c", True), ("", False), ("a b", False), ("é", False), ("a\n", False), ("x" * 10**6, False)],
)
def test_only_tokens_are_sent_to_the_api_server(text: str, valid: bool) -> None:
    assert is_token(text) == valid


async def test_graphs_are_asked_for_on_their_own(reviews: Reviews) -> None:
    reviews.may_list = {(each[0].label, "a") for each in SHOWN}
    presented = shown(bearer="good")
    assert await reviews.access.may_list(presented, SETS, "a")
    assert not await reviews.access.may_list(presented, GRAPHS, "a")
    reviews.may_list.add((GRAPHS.label, "a"))
    reviews.clock.now += timing.RIGHTS_GRANTED_KEPT
    assert await reviews.access.may_list(presented, GRAPHS, "a")
