"""Answers: JSON and text, compressed where that saves time, and errors in one form."""

from __future__ import annotations

import asyncio
import gzip
import re
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import hdrs, web

from grove import timing

JSON = "application/json"
TEXT = "text/plain"
_GZIP = re.compile(r"(^|,)\s*gzip\s*(;\s*q=(1|0\.0*[1-9])[0-9.]*\s*)?(,|$)", re.IGNORECASE)
_encode = msgspec.json.Encoder().encode


def error_answer(status: HTTPStatus, message: str, retry_after: int | None = None) -> web.Response:
    """An error: one line, and after how many seconds to try again."""
    headers = {} if retry_after is None else {hdrs.RETRY_AFTER: str(retry_after)}
    return web.Response(status=status, body=_encode({"error": message}), content_type=JSON, headers=headers)


async def json_answer(request: web.Request, value: Any) -> web.Response:
    """A value as JSON."""
    return await body_answer(request, _encode(value), JSON)


async def text_answer(request: web.Request, text: str) -> web.Response:
    """Plain text."""
    return await body_answer(request, text.encode(errors="replace"), TEXT)


async def body_answer(request: web.Request, body: bytes, content_type: str) -> web.Response:
    """A body; a large one is compressed beside the event loop, if the client accepts that."""
    headers: dict[str, str] = {hdrs.VARY: hdrs.ACCEPT_ENCODING}
    if len(body) >= timing.COMPRESSED_ANSWER and accepts_gzip(request):
        body = await asyncio.to_thread(compressed, body)
        headers[hdrs.CONTENT_ENCODING] = "gzip"
    return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)


def accepts_gzip(request: web.Request) -> bool:
    """Whether the client accepts a compressed answer."""
    return _GZIP.search(request.headers.get(hdrs.ACCEPT_ENCODING, "")) is not None


def compressed(body: bytes) -> bytes:
    """The same bytes always give the same result."""
    return gzip.compress(body, compresslevel=timing.COMPRESSION_LEVEL, mtime=0)
