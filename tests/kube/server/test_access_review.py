"""Who may read metrics: what the API server is asked, how often, and what happens if it does not answer."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest

from grove import timing
from grove.kube.client.client import Client
from grove.kube.client.transport import Request, Response
from grove.kube.server.access_review import AccessReviewer
from tests.kube.executor.stub_transport import StubTransport, refused


class ApiServer:
    """Accepts the token `good`, and grants its user the path if `allowed`."""

    def __init__(self) -> None:
        self.allowed, self.down, self.asked, self.now = True, False, list[dict[str, object]](), 0.0
        transport = StubTransport(self.answer, lambda _: 0.0)
        self.reviewer = AccessReviewer(Client(transport), lambda: self.now)

    def answer(self, request: Request) -> Response:
        if self.down:
            return refused(403, "Forbidden")
        body = json.loads(request.body or b"")
        self.asked.append(body["spec"])
        user = {"username": "jane", "groups": ["a"]}
        known = body["spec"].get("token") == "good"
        verified, decided = {"authenticated": known, "user": user}, {"allowed": self.allowed}
        status = verified if "token" in body["spec"] else decided
        return Response(201, {}, json.dumps({**body, "status": status}).encode())


@pytest.mark.parametrize(
    ("token", "allowed", "down", "status"),
    [
        ("good", True, False, HTTPStatus.OK),
        ("good", False, False, HTTPStatus.FORBIDDEN),
        ("bad", True, False, HTTPStatus.UNAUTHORIZED),
        ("", True, False, HTTPStatus.UNAUTHORIZED),
        ("good", True, True, HTTPStatus.SERVICE_UNAVAILABLE),
    ],
)
async def test_status_is_that_of_both_reviews(
    token: str, allowed: bool, down: bool, status: HTTPStatus
) -> None:
    server = ApiServer()
    server.allowed, server.down = allowed, down
    assert await server.reviewer.status(token, "/metrics") is status


async def test_groups_and_path_are_reviewed() -> None:
    server = ApiServer()
    await server.reviewer.status("good", "/metrics")
    assert server.asked[1] == {
        "user": "jane",
        "groups": ["a"],
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_answers_are_kept_for_a_short_time_and_bounded() -> None:
    server = ApiServer()
    for _ in range(3):
        await server.reviewer.status("good", "/metrics")
    assert len(server.asked) == 2
    server.now, server.allowed = timing.ACCESS_GRANTED_KEPT, False
    assert await server.reviewer.status("good", "/metrics") is HTTPStatus.FORBIDDEN
    server.now, server.allowed = server.now + timing.ACCESS_DENIED_KEPT, True
    assert await server.reviewer.status("good", "/metrics") is HTTPStatus.OK
    for number in range(timing.ACCESS_REVIEWS_KEPT):
        await server.reviewer.status(f"bad-{number}", "/metrics")
    asked = len(server.asked)
    assert await server.reviewer.status("good", "/metrics") is HTTPStatus.OK
    assert len(server.asked) == asked + 2, "the oldest answer was dropped"
