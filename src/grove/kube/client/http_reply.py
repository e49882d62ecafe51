"""Parses HTTP/1.1 replies as they arrive, with httptools (llhttp, the parser of Node.js) in its strict mode.

This module adds limits, of which the parser has none, and checks of what it still accepts: a reply whose
length can be read in two ways can be taken for the reply to another request. API servers and the proxies in
front of them send nothing of the kind, so nothing is repaired: the request fails, and its connection is
closed.
"""

from __future__ import annotations

from collections.abc import Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct
from msgspec.structs import replace

from grove import timing

_SWITCHING = 101
_VERSIONS = ("1.1", "1.0")
_LENGTH, _CODING = "Content-Length", "Transfer-Encoding"


class HttpReply(Struct, frozen=True):
    """A whole reply."""

    status: int
    headers: Mapping[str, str]
    """Names are capitalised as in `Retry-After`."""
    body: bytes
    keep_alive: bool
    """Whether the connection can be used for another request."""


class BadReply(ValueError):
    """The server sent something that is not an HTTP/1.1 reply; the message is one line."""


class ReplyParser:
    """Parses one reply from pieces that end anywhere; `endless`: its body may have any length. The methods
    `on_...` are callbacks of httptools."""

    def __init__(self, *, endless: bool = False) -> None:
        self._endless = endless
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._received = self._in_body = 0  # bytes
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._status = 0  # of the reply, once its head is whole
        self._problem = ""
        self._reply: HttpReply | None = None

    def feed(self, data: bytes) -> HttpReply | None:
        """Parse the next piece. Returns the reply if it is complete, raises BadReply if it is invalid; after
        either, the parser must not be used again."""
        assert self._parser is not None
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as problem:
            if self._reply is None:  # otherwise the problem is in data after the reply
                self._problem = self._problem or str(problem)
        if self._in_body > timing.MAX_REPLY_BODY and not self._endless:
            self._problem = f"its body has more than {timing.MAX_REPLY_BODY} bytes"
        if self._received - self._in_body > timing.MAX_REPLY_OVERHEAD + self._overhead_of_body():
            self._problem = self._problem or "its head, or what is around its chunks, is too long"
        if self._problem or self._reply is not None:
            self._parser = None  # breaks the reference cycle
        if self._problem:
            raise BadReply(self._problem)
        return self._reply

    def _overhead_of_body(self) -> int:
        """How many bytes around its chunks a body of this size may have."""
        if self._endless:
            return self._in_body * timing.STREAM_OVERHEAD_PER_BODY
        return self._in_body // timing.REPLY_BODY_PER_OVERHEAD

    @property
    def head(self) -> tuple[int, Mapping[str, str]] | None:
        """Status and headers of the reply, once they have arrived."""
        return (self._status, self._headers) if self._status else None

    def take_body(self) -> list[bytes]:
        """The pieces of the body that have arrived since the last call."""
        taken, self._pieces = self._pieces, []
        return taken

    def end(self) -> HttpReply | None:
        """The server has closed the connection. Returns the reply if its length is defined by that."""
        if self._status and not self._headers.keys() & {_LENGTH, _CODING}:
            return HttpReply(self._status, self._headers, b"".join(self._pieces), keep_alive=False)
        return None

    def on_message_begin(self) -> None:
        """The start of an interim reply, of the reply, or of data after it."""
        if self._reply is not None:
            self._reply = replace(self._reply, keep_alive=False)
        self._headers, self._pieces, self._status = {}, [], 0

    def on_header(self, raw_name: bytes, raw_value: bytes) -> None:
        """A header, or a trailer, which is ignored."""
        if not self._status:
            name, value = raw_name.decode("latin-1").title(), raw_value.decode("latin-1").strip()
            known = self._headers.get(name)
            self._headers[name] = value if known is None else f"{known},{value}"

    def on_headers_complete(self) -> None:
        """The end of the head of an interim reply or of the reply."""
        assert self._parser is not None
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        if self._reply is not None:
            return
        if status == _SWITCHING:
            self._problem = "it switches to another protocol"
        elif status >= 200:
            self._status = status
            self._problem = self._problem or _why_rejected(version, self._headers)
        elif status < 100 or version not in _VERSIONS:
            self._problem = "this is not HTTP/1.1"

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        self._in_body += len(piece)
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """The end of an interim reply, of the reply, or of data after it."""
        assert self._parser is not None
        if self._status and self._reply is None:
            keep_alive = self._parser.should_keep_alive()  # known only at the end
            self._reply = HttpReply(self._status, self._headers, b"".join(self._pieces), keep_alive)


def _why_rejected(version: str, headers: Mapping[str, str]) -> str:
    """Why a head that the parser accepts is rejected here; empty if it is valid."""
    if version not in _VERSIONS:
        return "this is not HTTP/1.1"
    coding = headers.get(_CODING)
    if coding is not None and (coding.lower() != "chunked" or version == "1.0"):
        return f"its {_CODING} is {coding[: timing.REPLY_SHOWN]!r} in HTTP/{version}"
    if int(headers.get(_LENGTH, 0)) > timing.MAX_REPLY_BODY:
        return f"its body has more than {timing.MAX_REPLY_BODY} bytes"
    return ""
