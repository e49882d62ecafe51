"""The webhooks over HTTP: requests that are no reviews are rejected in one line, with bounded cost."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from grove import timing
from grove.rules.podcliqueset.defaults import default_set
from grove.webhooks import server
from grove.webhooks.registrations import Path
from tests.webhooks.http_server import serving
from tests.webhooks.reviews import UID, review, reviewer, workload

JSON = {"Content-Type": "application/json"}
GOOD = json.dumps(review("CREATE", default_set(workload()))).encode()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with serving(reviewer()) as (host, port):
        yield f"http://{host}:{port}"


async def response_to(
    url: str, path: str, body: Any = GOOD, method: str = "POST", **headers: str
) -> tuple[int, str]:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url + path, data=_payload(body), headers={**JSON, **named}) as reply,
    ):
        return reply.status, await reply.text()


def _payload(body: Any) -> Any:
    return io.BytesIO(body) if isinstance(body, bytes) else body


@pytest.mark.parametrize("path", [Path.DEFAULT_SET, Path.VALIDATE_SET])
async def test_review_is_answered(url, path):
    status, text = await response_to(url, path)
    assert status == 200
    assert json.loads(text)["response"] == {"uid": UID, "allowed": True, "status": {"code": 200}}


async def test_charset_in_content_type_is_accepted(url):
    assert (await response_to(url, Path.VALIDATE_SET, Content_Type="application/json; charset=utf-8"))[
        0
    ] == 200


async def test_denied_object_is_http_200(url):
    body = json.dumps(review("CREATE", workload(terminationDelay="0s"))).encode()
    status, text = await response_to(url, Path.VALIDATE_SET, body)
    assert (status, json.loads(text)["response"]["allowed"]) == (200, False)


@pytest.mark.parametrize(
    ("body", "method", "headers", "status", "message"),
    [
        (b"", "GET", {}, 405, ""),
        (b"", "DELETE", {}, 405, ""),
        (GOOD, "PUT", {}, 405, ""),
        (GOOD, "POST", {"Content_Type": "text/plain"}, 415, "send application/json"),
        (GOOD, "POST", {"Content_Type": "application/x-yaml"}, 415, "send application/json"),
        (gzip.compress(GOOD, mtime=0), "POST", {"Content_Encoding": "gzip"}, 415, "not compressed"),
        (b"", "POST", {}, 400, "not an AdmissionReview"),
        (b"{", "POST", {}, 400, "not an AdmissionReview"),
        (b"\xff\xfe\x00", "POST", {}, 400, "not an AdmissionReview"),
        (b'{"a":' * 50_000, "POST", {}, 400, "nested more than 200 levels"),
        (b" " * (timing.MAX_REVIEW + 1), "POST", {}, 413, "more than"),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_invalid_request_gets_http_error_with_reason(url, body, method, headers, status, message):
    got, text = await response_to(url, Path.VALIDATE_SET, body, method, **headers)
    assert got == status
    assert message in text
    assert len(text.splitlines()) == 1


async def test_unknown_path_is_404_and_health_is_ok(url):
    assert (await response_to(url, "/webhooks/nothing"))[0] == 404
    assert await response_to(url, server.HEALTH, None, "GET") == (200, "ok\n")


async def test_endless_body_is_rejected_as_too_large(url):
    """Chunked, so that the length is not known beforehand."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 2**20

    try:
        status, _ = await response_to(url, Path.VALIDATE_SET, endless())
        assert status == 413
    except aiohttp.ClientError:
        pass  # the server closed the connection while the body was being sent


async def test_missing_body_times_out(url, monkeypatch):
    monkeypatch.setattr(timing, "REVIEW_BODY_TIMEOUT", 0.1)
    never = asyncio.Event()

    async def dripping() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    status, text = await response_to(url, Path.VALIDATE_SET, dripping())
    assert (status, "did not arrive" in text) == (408, True)


async def test_trickling_body_times_out(url, monkeypatch):
    """The limit is for the whole body, not for the silence between two bytes."""
    monkeypatch.setattr(timing, "REVIEW_BODY_TIMEOUT", 0.2)

    async def trickling() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    status, text = await response_to(url, Path.VALIDATE_SET, trickling())
    assert (status, "did not arrive" in text) == (408, True)


async def test_stalled_large_bodies_do_not_block_small_ones(url):
    never = asyncio.Event()

    async def dripping() -> AsyncIterator[bytes]:
        yield b" " * 2**20
        await never.wait()

    slow = [asyncio.create_task(response_to(url, Path.VALIDATE_SET, dripping())) for _ in range(20)]
    answers = await asyncio.gather(*(response_to(url, Path.VALIDATE_SET) for _ in range(20)))
    assert {status for status, _ in answers} == {200}
    assert {status for status, _ in await asyncio.gather(*slow)} == {408}


async def test_compressed_body_is_rejected(url):
    bomb = gzip.compress(b" " * 2**26)
    status, _ = await response_to(url, Path.VALIDATE_SET, bomb, Content_Encoding="gzip")
    assert status == 415


async def test_concurrent_reviews_are_all_answered(url):
    answers = await asyncio.gather(*(response_to(url, Path.VALIDATE_SET) for _ in range(100)))
    assert {status for status, _ in answers} == {200}
