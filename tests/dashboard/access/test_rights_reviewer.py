"""What a user may see: which questions are asked, and how often; nothing is granted without an answer."""

from __future__ import annotations

import asyncio

import pytest

from grove import timing
from grove.dashboard.access.errors import ReviewUnavailable
from grove.dashboard.access.rights_reviewer import SHOWN
from grove.dashboard.rights import Rights, User
from tests.dashboard.access.reviews import Reviews

JANE = User("jane", "1", ("g",), {"k": ("v",)})
KINDS = [each[0].label for each in SHOWN]


async def test_user_who_lists_everything_sees_everything() -> None:
    reviews = Reviews("a", "b")
    reviews.may_list = {("*", "")}
    assert await reviews.rights.rights(JANE) == Rights()
    assert len(reviews.asked) == len(SHOWN) + 1
    assert reviews.asked[0]["groups"] == ["g"]
    assert reviews.asked[0]["extra"] == {"k": ["v"]}


@pytest.mark.parametrize("lacking", KINDS)
async def test_each_kind_is_needed_in_a_namespace(lacking: str) -> None:
    reviews = Reviews("a", "b", "c")
    reviews.may_list = {(kind, "a") for kind in KINDS} | {(kind, "b") for kind in KINDS if kind != lacking}
    rights = await reviews.rights.rights(JANE)
    assert rights.namespaces == frozenset({"a"})
    assert not rights.nodes
    named = any(line == f"namespace b: you may not list {lacking}" for line in rights.unread)
    assert named == (lacking != "podcliquesets.grove.io"), "b is not named to users who may not list its sets"
    assert not any("namespace c" in line for line in rights.unread)


@pytest.mark.parametrize("lacking", KINDS)
async def test_each_kind_is_needed_in_the_cluster(lacking: str) -> None:
    reviews = Reviews("a")
    reviews.may_list = {(kind, "") for kind in KINDS if kind != lacking} | {("nodes", "")}
    rights = await reviews.rights.rights(JANE)
    assert (rights.namespaces, rights.nodes) == (frozenset(), True)


async def test_events_of_either_group_are_enough() -> None:
    reviews = Reviews("a")
    reviews.may_list = {(kind, "a") for kind in KINDS[:-1]} | {("events", "a")}
    assert (await reviews.rights.rights(JANE)).namespaces == frozenset({"a"})


async def test_user_without_rights_sees_nothing() -> None:
    reviews = Reviews("a", "b")
    rights = await reviews.rights.rights(JANE)
    assert (rights.namespaces, rights.nodes) == (frozenset(), False)
    assert len(rights.unread) == 2


async def test_answers_are_kept_for_a_short_time() -> None:
    reviews = Reviews("a")
    reviews.may_list = {("*", "")}
    await reviews.rights.rights(JANE)
    asked = len(reviews.asked)
    reviews.clock.now = timing.RIGHTS_GRANTED_KEPT - 0.1
    reviews.may_list = set()
    assert await reviews.rights.rights(JANE) == Rights()
    assert len(reviews.asked) == asked
    reviews.clock.now += 0.2
    assert (await reviews.rights.rights(JANE)).namespaces == frozenset()


async def test_denied_rights_are_asked_for_again_sooner() -> None:
    reviews = Reviews("a")
    await reviews.rights.rights(JANE)
    reviews.may_list = {("*", "")}
    reviews.clock.now = timing.RIGHTS_DENIED_KEPT - 0.1
    assert (await reviews.rights.rights(JANE)).namespaces == frozenset()
    reviews.clock.now += 1.0
    assert await reviews.rights.rights(JANE) == Rights()


async def test_many_denied_namespaces_are_kept_longer() -> None:
    reviews = Reviews(*(f"n{number}" for number in range(400)))
    await reviews.rights.rights(JANE)
    reviews.asked.clear()
    for _ in range(60):
        reviews.clock.now += 1.0
        await reviews.rights.rights(JANE)
    assert len(reviews.asked) < 60 * 15
    assert reviews.transport.most_in_flight <= timing.RIGHTS_REVIEWS_AT_ONCE


async def test_new_namespace_is_asked_for_at_once() -> None:
    reviews = Reviews("a")
    reviews.may_list = {("*", "b")}
    assert (await reviews.rights.rights(JANE)).namespaces == frozenset()
    reviews.namespaces = frozenset({"a", "b"})
    assert (await reviews.rights.rights(JANE)).namespaces == frozenset({"b"})


async def test_no_answer_is_no_grant() -> None:
    reviews = Reviews("a")
    reviews.may_list = {("*", "")}
    await reviews.rights.rights(JANE)
    reviews.clock.now, reviews.down = timing.RIGHTS_GRANTED_KEPT, True
    with pytest.raises(ReviewUnavailable) as error:
        await reviews.rights.rights(JANE)
    assert error.value.status == 503
    assert error.value.message.endswith("try again later")


async def test_requests_of_one_user_at_once_ask_once() -> None:
    reviews = Reviews("a")
    reviews.may_list = {("*", "")}
    await asyncio.gather(*(reviews.rights.rights(JANE) for _ in range(10)))
    assert len(reviews.asked) == len(SHOWN) + 1


async def test_users_do_not_share_answers_and_are_bounded() -> None:
    reviews = Reviews()
    for number in range(timing.RIGHTS_USERS_KEPT + 10):
        await reviews.rights.rights(User(f"user-{number}"))
    assert len(reviews.rights._users) == timing.RIGHTS_USERS_KEPT
    before = len(reviews.asked)
    last = f"user-{timing.RIGHTS_USERS_KEPT}"
    await reviews.rights.rights(User(last))
    assert len(reviews.asked) == before
    await reviews.rights.rights(User(last, groups=("other",)))
    assert len(reviews.asked) > before


async def test_removed_namespaces_are_forgotten() -> None:
    reviews = Reviews("a", "b")
    await reviews.rights.rights(JANE)
    reviews.namespaces = frozenset()
    await reviews.rights.rights(JANE)
    (answers,) = reviews.rights._users.values()
    assert {each.namespace for each in answers.known} == {""}


async def test_tokens_of_one_user_share_answers() -> None:
    reviews = Reviews("a")
    for number in range(3):
        extra = {"authentication.kubernetes.io/credential-id": (f"JTI={number}",)}
        await reviews.rights.rights(User("robot", extra=extra))
    assert len(reviews.rights._users) == 1
    assert reviews.asked[0]["extra"], "the API server sees it all the same"
    before = len(reviews.asked)
    await reviews.rights.rights(User("robot", extra={"other": ("x",)}))
    assert len(reviews.asked) > before


def test_answers_of_all_sessions_are_kept() -> None:
    assert timing.RIGHTS_USERS_KEPT >= timing.SESSIONS
    assert timing.TOKENS_KEPT >= timing.SESSIONS
