"""What the server refuses: other sites, paths outside of its files, wrong parameters, too many requests."""

from __future__ import annotations

import asyncio

import pytest

from grove import timing
from tests.dashboard.server.running import Running, running


@pytest.mark.parametrize("path", ["/", "/api/picture", "/static/js/main.js", "/api/none"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", ""])
async def test_foreign_host_is_refused(path: str, host: str) -> None:
    async with running("a") as server:
        answer = await server.get(path, Host=host.format(port=server.port))
        assert answer.status == 421
        assert (await answer.json())["error"].endswith(f"open http://127.0.0.1:{server.port}")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "[::1]", "127.0.0.1"])
async def test_own_hosts_are_accepted(host: str) -> None:
    async with running("a") as server:
        assert (await server.get("/api/picture", Host=f"{host}:{server.port}")).status == 200


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
async def test_requests_of_other_sites_are_refused(site: str, status: int) -> None:
    async with running("a") as server:
        for path in ("/api/picture", "/api/search?q=x"):
            assert (await server.get(path, **{"Sec-Fetch-Site": site})).status == status
        assert (await server.get("/", **{"Sec-Fetch-Site": site})).status == 200  # a link to the page


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server/api.py",
        "/static/%2e%2e/server/api.py",
        "/static/..%2fserver%2fapi.py",
        "/static//etc/passwd",
        "/static/js/../../server/api.py",
        "/static/%00",
        "/static/..\\server\\api.py",
        "/../../etc/passwd",
    ],
)
async def test_path_traversal_finds_nothing(path: str) -> None:
    async with running() as server:
        assert await _status(server, path) == 404


async def _status(server: Running, path: str, method: str = "GET") -> int:
    """The status of a request whose path is sent as it is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("workload", "parameter namespace is missing: give the name of a namespace"),
        ("workload?namespace=a", "parameter name is missing: give the name of an object"),
        ("workload?namespace=A&name=b", "parameter namespace is 'A': give the name of a namespace"),
        ("workload?namespace=a&name=../b", "parameter name is '../b': give the name of an object"),
        ("workload?namespace=a&namespace=b&name=c", "parameter namespace is given 2 times: give it once"),
        ("workload?namespace=a&name=b&x%0Ay=1", "unknown parameter 'x\\ny': use namespace, name"),
        ("explanation?namespace=a&name=b", "parameter name is 'b': give gang/NAME or set/NAME"),
        (
            "object?namespace=a&name=b&kind=secret",
            "parameter kind is 'secret': give one of dynamographdeployment, ",
        ),
        ("search?q=", "parameter q is '': give 1 to 320 printable characters"),
        (f"search?q={'x' * 321}", f"parameter q is '{'x' * 40}'...: give 1 to 320 printable characters"),
        ("node?name=%ff", "parameter name is '\\ufffd': give the name of a node"),
        ("picture?x=1", "unknown parameter 'x': there is none"),
        ("stream?since=%0A", "parameter since is '\\n': give the version of a picture"),
        (f"search?q={'x' * 3000}", "the query has more than 2048 bytes: send less"),
    ],
)
async def test_wrong_parameters_are_one_line(path: str, line: str) -> None:
    async with running("a") as server:
        answer = await server.get(f"/api/{path}")
        assert answer.status == 400
        assert (await answer.json())["error"].startswith(line)


async def test_huge_query_is_refused() -> None:
    async with running("a") as server:
        assert await _status(server, f"/api/search?q={'x' * 100_000}") == 400
        assert (await server.get("/api/picture")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_other_methods_are_refused(method: str) -> None:
    async with running("a") as server:
        assert await _status(server, "/api/picture", method) == 405


async def test_too_many_requests_are_refused_for_a_time() -> None:
    async with running("a") as server:
        answers = [await server.get("/api/search?q=x") for _ in range(timing.API_RATE[0] * 2)]
        refused = [each for each in answers if each.status == 429]
        assert refused
        assert refused[0].headers["Retry-After"] == "1"
        assert await refused[0].json() == {"error": "too many requests: try again in 1 s"}
        assert (await server.get("/")).status == 200


async def test_explanations_have_turns() -> None:
    async with running("a") as server:
        server.pages.release.clear()
        path = "/api/explanation?namespace=a&name=set/x"
        pending = [server.get(path) for _ in range(timing.EXPLANATION_RATE[0] + 1)]
        done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        refused = await done.pop()
        assert refused.status == 429
        assert (await refused.json())["error"].startswith("too many explanations")
        assert server.pages.explained <= timing.EXPLANATIONS_AT_ONCE
        assert (await server.get("/api/picture")).status == 200
        server.pages.release.set()
        assert sorted(each.status for each in await asyncio.gather(*pending)) == [200] * 6 + [429]


@pytest.mark.parametrize(
    "path", ["picture", "search?q=x", "workload?namespace=a&name=b", "stream?since=other-process"]
)
async def test_costly_requests_count_as_several(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "API_RATE", (6, 0.001))
    async with running("a") as server, asyncio.timeout(20):
        answers = [await server.get(f"/api/{path}") for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 429]
