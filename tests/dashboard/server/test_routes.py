"""Routes of the dashboard on loopback: answers, headers, errors, and what is refused."""

from __future__ import annotations

import gzip
import json

import pytest
from structlog.testing import capture_logs

from grove.dashboard.access.caller import OwnAccess
from grove.dashboard.rights import Rights
from grove.dashboard.server.security_headers import HEADERS
from tests.dashboard.server.running import running

PAGES = [
    ("/api/workload?namespace=a&name=demo", '{"workload":"a/demo","graphs":true}'),
    ("/api/explanation?namespace=a&name=gang/demo-0", '{"explained":"a/gang/demo-0","graphs":true}'),
    ("/api/object?namespace=a&kind=pod&name=p", "kind: pod\nmetadata: a/p\n"),
    ("/api/object?namespace=a&kind=PodGang&name=p", "kind: PodGang\nmetadata: a/p\n"),
    ("/api/object?namespace=a&kind=pg&name=p", "kind: pg\nmetadata: a/p\n"),
    ("/api/node?name=n1", '{"node":"n1"}'),
    ("/api/search?q=x%20y", '{"found":"x y"}'),
]


async def test_picture_has_the_viewer_and_all_namespaces() -> None:
    async with running("a", "b") as server:
        answer = await server.get("/api/picture")
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        picture = json.loads(await answer.read())
        assert {*picture["sets"]} == {"a/demo", "b/demo"}
        assert "signsIn" not in picture["viewer"]


@pytest.mark.parametrize(("path", "body"), PAGES)
async def test_pages_are_those_of_their_functions(path: str, body: str) -> None:
    async with running("a") as server:
        answer = await server.get(path)
        assert (answer.status, (await answer.read()).decode()) == (200, body)


@pytest.mark.parametrize("path", [path for path, _ in PAGES[:3]])
async def test_unseen_namespace_is_answered_as_an_unknown_one(path: str) -> None:
    access = OwnAccess(Rights(frozenset({"b"})))
    async with running("a", "b", access=access) as server:
        hidden = await server.get(path)
        unknown = await server.get(path.replace("namespace=a", "namespace=z"))
        assert hidden.status == unknown.status == 404
        assert (await hidden.read()) == (await unknown.read()).replace(b"namespace z", b"namespace a")
        assert {**hidden.headers, "Date": ""} == {**unknown.headers, "Date": ""}


async def test_nodes_need_the_right_to_nodes() -> None:
    async with running("a", access=OwnAccess(Rights(nodes=False))) as server:
        answer = await server.get("/api/node?name=n1")
        assert answer.status == 403
        assert "ask for the right to list nodes" in (await answer.json())["error"]


async def test_error_of_a_page_is_its_status_and_line() -> None:
    async with running("a") as server:
        answer = await server.get("/api/workload?namespace=a&name=absent")
        assert (answer.status, await answer.json()) == (404, {"error": "no absent"})


@pytest.mark.parametrize(
    "path", ["/", "/static/js/main.js", "/api/picture", "/api/none", "/none", "/healthz", "/static/none"]
)
async def test_every_answer_has_the_security_headers(path: str) -> None:
    async with running("a") as server:
        answer = await server.get(path)
        assert HEADERS.items() <= dict(answer.headers).items()
        assert "Strict-Transport-Security" not in answer.headers
        assert answer.headers["Server"] == "grove"


async def test_files_have_a_type_and_an_etag_and_are_compressed() -> None:
    async with running() as server:
        index = await server.get("/", **{"Accept-Encoding": "identity"})
        assert (index.content_type, await index.read()) == ("text/html", b"<!doctype html>")
        script = await server.get("/static/js/main.js", **{"Accept-Encoding": "br, gzip;q=0.5"})
        assert (script.content_type, await script.read()) == ("text/javascript", b"packed")
        assert script.headers["Content-Encoding"] == "gzip"
        assert script.headers["Cache-Control"] == "no-cache"
        plain = await server.get("/static/js/main.js", **{"Accept-Encoding": "gzip;q=0, br"})
        assert await plain.read() == b"x" * 5000
        again = await server.get("/static/js/main.js", **{"If-None-Match": script.headers["ETag"]})
        assert (again.status, await again.read()) == (304, b"")


async def test_large_answers_are_compressed_if_accepted() -> None:
    async with running(*(f"namespace-{number}" for number in range(200))) as server:
        packed = await server.get("/api/picture", **{"Accept-Encoding": "gzip"})
        plain = await server.get("/api/picture", **{"Accept-Encoding": "identity"})
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(await packed.read()) == await plain.read()


async def test_ready_and_alive_need_no_host() -> None:
    async with running() as server:
        for path in ("/healthz", "/readyz"):
            answer = await server.get(path, Host="10.0.0.1:8443")
            assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_server_is_not_ready_while_lists_run() -> None:
    async with running() as server:
        server.board.is_settled = False
        assert (await server.get("/readyz")).status == 503
        assert (await server.get("/api/picture")).status == 200


@pytest.mark.parametrize("path", ["/api/sign-in", "/api/sign-out"])
async def test_sign_in_exists_only_with_sign_in(path: str) -> None:
    async with running() as server, server.client.post(server.url(path), json={"token": "x"}) as answer:
        assert answer.status == 404


async def test_server_that_still_reads_the_cluster_says_so() -> None:
    async with running(ready=False) as server:
        answer = await server.get("/readyz")
        assert (answer.status, await answer.text()) == (503, "waiting for the objects of the cluster\n")
        assert (await server.get("/healthz")).status == 200
        for path in ("picture", "stream?since=1", "search?q=x"):
            answer = await server.get(f"/api/{path}")
            assert answer.status == 503
            assert (await answer.json())["error"].startswith("the dashboard still reads the cluster")


async def test_bug_is_answered_and_logged() -> None:
    async with running("a") as server:
        with capture_logs() as logs:
            answer = await server.get("/api/workload?namespace=a&name=broken")
        assert answer.status == 500
        assert "log" in (await answer.json())["error"]
        assert HEADERS.items() <= dict(answer.headers).items()
        assert [each["log_level"] for each in logs] == ["error"]
