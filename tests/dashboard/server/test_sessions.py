"""Sign-in over HTTPS: the cookie, tokens in headers, requests of other sites, and a restart."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie

import pytest

from grove import timing
from grove.dashboard.access.rights_reviewer import SHOWN
from grove.dashboard.server.requests.presented import COOKIE
from tests.dashboard.access.reviews import Reviews
from tests.dashboard.server.running import Events, Running, running


@pytest.fixture
def reviews() -> Reviews:
    reviews = Reviews("a", "b")
    reviews.may_list = {("*", "a")}
    return reviews


@pytest.fixture
async def server(reviews: Reviews) -> AsyncIterator[Running]:
    async with running("a", "b", access=reviews.access, tls=True) as server:
        yield server


async def sign_in(server: Running, token: str = "good") -> dict[str, str]:
    """The header of a session."""
    answer = await server.post("/api/sign-in", json={"token": token})
    assert answer.status == 204, await answer.text()
    return {"Cookie": f"{COOKIE}={SimpleCookie(answer.headers['Set-Cookie'])[COOKIE].value}"}


async def test_sign_in_sets_a_cookie_that_scripts_cannot_read(server: Running) -> None:
    answer = await server.post("/api/sign-in", json={"token": " good\n"})
    assert answer.status == 204
    cookie = SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]
    assert (cookie["path"], cookie["domain"], cookie["samesite"]) == ("/", "", "Strict")
    assert cookie["secure"]
    assert cookie["httponly"]
    assert int(cookie["max-age"]) == timing.SESSION_LIFETIME
    assert "good" not in cookie.value
    assert answer.headers["Strict-Transport-Security"]


async def test_session_sees_its_namespaces_only(server: Running) -> None:
    session = await sign_in(server)
    picture = json.loads(await (await server.get("/api/picture", **session)).read())
    assert {*picture["sets"]} == {"a/demo"}
    assert picture["viewer"] == {"name": "jane", "namespaces": ["a"], "nodes": False, "signsIn": True}
    assert (await server.get("/api/workload?namespace=a&name=demo", **session)).status == 200
    assert (await server.get("/api/workload?namespace=b&name=demo", **session)).status == 404
    assert (await server.get("/api/node?name=n", **session)).status == 403


@pytest.mark.parametrize("path", ["workload?namespace=a&name=x", "explanation?namespace=a&name=set/x"])
async def test_graphs_need_a_right_of_their_own(server: Running, reviews: Reviews, path: str) -> None:
    bearer = {"Authorization": "Bearer good"}
    reviews.may_list = {(each[0].label, "a") for each in SHOWN}
    answer = await server.get(f"/api/{path}", **bearer)
    assert (answer.status, json.loads(await answer.read())["graphs"]) == (200, False)
    reviews.may_list |= {("dynamographdeployments.nvidia.com", "a")}
    reviews.clock.now += timing.RIGHTS_GRANTED_KEPT
    assert json.loads(await (await server.get(f"/api/{path}", **bearer)).read())["graphs"] is True


async def test_problem_of_the_api_server_names_nothing_of_others(server: Running) -> None:
    path = "/api/explanation?namespace=a&name=set/refused"
    answer = await server.get(path, Authorization="Bearer good")
    assert (answer.status, "secret" in await answer.text()) == (503, False)
    async with running("a") as own:
        assert "secret" in await (await own.get(path)).text()


async def test_right_to_graphs_is_asked_for_once(server: Running, reviews: Reviews) -> None:
    for _ in range(3):
        await server.get("/api/workload?namespace=a&name=x", Authorization="Bearer good")
    asked = [each for each in reviews.asked if "dynamographdeployments" in json.dumps(each)]
    assert len(asked) == 1


async def test_token_in_the_header_is_accepted(server: Running) -> None:
    assert (await server.get("/api/picture", Authorization="Bearer good")).status == 200
    assert (await server.get("/api/picture", Authorization="Bearer bad")).status == 401
    assert (await server.get("/api/picture", Authorization="Basic good")).status == 401


@pytest.mark.parametrize(
    "path",
    [
        "picture",
        "stream?since=0",
        "workload?namespace=a&name=demo",
        "explanation?namespace=a&name=set/demo",
        "object?namespace=a&kind=pod&name=x",
        "node?name=n",
        "search?q=x",
        "search?wrong=1",
    ],
)
async def test_nothing_is_answered_without_sign_in(server: Running, path: str) -> None:
    answer = await server.get(f"/api/{path}", Cookie=f"{COOKIE}=x")
    assert answer.status == 401
    assert await answer.json() == {"error": "the session has ended: sign in again"}


async def test_page_itself_needs_no_sign_in(server: Running) -> None:
    for path in ("/", "/static/js/main.js", "/healthz", "/readyz"):
        assert (await server.get(path)).status == 200


async def test_token_in_the_address_is_not_read(server: Running) -> None:
    assert (await server.get("/api/picture?token=good")).status == 401


async def test_signed_out_session_ends_its_streams(server: Running) -> None:
    session = await sign_in(server)
    events = Events(await server.get("/api/stream?since=0", **session))
    await events.next(name="heartbeat")
    answer = await server.post("/api/sign-out", headers=session)
    assert answer.status == 204
    assert SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]["max-age"] == "0"
    await events.next(name="reset")
    assert (await server.get("/api/picture", **session)).status == 401


async def test_second_sign_in_ends_the_first_session(server: Running) -> None:
    first = await sign_in(server)
    await server.post("/api/sign-in", json={"token": "good"}, headers=first)
    assert (await server.get("/api/picture", **first)).status == 401


async def test_cookie_of_another_process_is_not_accepted(server: Running) -> None:
    session = await sign_in(server)
    async with running("a", access=Reviews("a").access, tls=True) as restarted:
        assert (await restarted.get("/api/picture", **session)).status == 401


async def test_api_server_that_is_away_is_503(server: Running, reviews: Reviews) -> None:
    session = await sign_in(server)
    reviews.down = True
    answer = await server.get("/api/picture", **session)
    assert answer.status == 503
    assert (await answer.json())["error"].startswith("the API server does not review tokens and rights")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 204),
        ({"Origin": "https://{host}"}, 204),
        ({"Origin": "https://{host}", "Sec-Fetch-Site": "same-origin"}, 204),
        ({"Origin": "http://{host}"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "https://{host}.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_sign_in_of_other_sites_is_refused(
    server: Running, headers: dict[str, str], status: int
) -> None:
    sent = {key: value.format(host=f"127.0.0.1:{server.port}") for key, value in headers.items()}
    answer = await server.post("/api/sign-in", json={"token": "good"}, headers=sent)
    assert answer.status == status
    assert ("Set-Cookie" in answer.headers) == (status == 204)


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"token": "good"}', "text/plain", 415),
        (b"token=good", "application/x-www-form-urlencoded", 415),
        (b'{"token": 1}', "application/json", 400),
        (b"{", "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b'{"token": "' + b"x" * 200_000 + b'"}', "application/json", 413),
        (b'{"token": "bad"}', "application/json", 401),
        (b'{"token": ""}', "application/json", 401),
        (b'{"token": "a\\nb"}', "application/json", 401),
    ],
)
async def test_wrong_sign_in_is_one_line(
    server: Running, body: bytes, content_type: str, status: int
) -> None:
    answer = await server.post("/api/sign-in", data=body, headers={"Content-Type": content_type})
    assert answer.status == status
    assert "\n" not in (await answer.json())["error"]
    assert "Set-Cookie" not in answer.headers


async def test_attempts_are_limited(server: Running) -> None:
    found = [
        (await server.post("/api/sign-in", json={"token": f"bad-{number}"})).status
        for number in range(timing.SIGN_IN_RATE[0] + 1)
    ]
    assert found == [401] * timing.SIGN_IN_RATE[0] + [429]
