"""An HTTP/1.1 reply, parsed as it arrives by httptools (llhttp, the parser of Node.js), in its strict mode.

Added to it are limits, of which it has none, and checks of what it still forgives: a reply whose
length can be read in two ways is how the reply to one request becomes the reply to another. API servers and
the proxies in front of them send nothing of the kind, so nothing is repaired: the request fails, and its
connection is closed.
"""

from __future__ import annotations

from collections.abc import Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct
from msgspec.structs import replace

MOST_BODY = 1024**3
"""Bytes. What has to fit is a page of 500 objects, each as large as etcd accepts it: 500 x 1.5 MiB."""
MOST_OTHER = 64 * 1024
"""Bytes of everything that is not body, interim replies, chunk sizes and trailers included; for long bodies
one more for every `_BODY_PER_OTHER`. An API server's head has less than 1 KiB, its chunks 2 KiB and more."""
_BODY_PER_OTHER = 8
_SHOWN = 60  # characters of the reply in an error
_SWITCHING = 101
_VERSIONS = ("1.1", "1.0")
_LENGTH, _CODING = "Content-Length", "Transfer-Encoding"


class HttpReply(Struct, frozen=True):
    """A whole reply."""

    status: int
    headers: Mapping[str, str]
    """By their names as in `Retry-After`."""
    body: bytes
    keep_alive: bool
    """Whether the connection is good for another request."""


class BadReply(ValueError):
    """What the server sent is not an HTTP/1.1 reply; one line says why."""


class ReplyParser:
    """One reply, from pieces that are cut anywhere. The methods `on_...` are called by the parser."""

    def __init__(self) -> None:
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._received = self._in_body = 0  # bytes
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._status = 0  # of the reply, once its head is whole
        self._problem = ""
        self._reply: HttpReply | None = None

    def feed(self, data: bytes) -> HttpReply | None:
        """Parse some more; the reply, if that was the rest of it. Raises BadReply. Either is the end."""
        assert self._parser is not None
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as problem:
            if self._reply is None:  # otherwise it is about what came after the reply
                self._problem = self._problem or str(problem)
        if self._in_body > MOST_BODY:
            self._problem = f"its body has more than {MOST_BODY} bytes"
        if self._received - self._in_body > MOST_OTHER + self._in_body // _BODY_PER_OTHER:
            self._problem = self._problem or "its head, or what is around its chunks, is too long"
        if self._problem or self._reply is not None:
            self._parser = None  # the two refer to each other
        if self._problem:
            raise BadReply(self._problem)
        return self._reply

    def end(self) -> HttpReply | None:
        """The server has closed the connection; the reply, if it may end so."""
        if self._status and not self._headers.keys() & {_LENGTH, _CODING}:
            return HttpReply(self._status, self._headers, b"".join(self._pieces), keep_alive=False)
        return None

    def on_message_begin(self) -> None:
        """An interim reply, the reply, or something after it."""
        if self._reply is not None:
            self._reply = replace(self._reply, keep_alive=False)
        self._headers, self._pieces, self._status = {}, [], 0

    def on_header(self, raw_name: bytes, raw_value: bytes) -> None:
        """A header, or a trailer: those are ignored."""
        if not self._status:
            name, value = raw_name.decode("latin-1").title(), raw_value.decode("latin-1").strip()
            known = self._headers.get(name)
            self._headers[name] = value if known is None else f"{known},{value}"

    def on_headers_complete(self) -> None:
        """The head of an interim reply or of the reply."""
        assert self._parser is not None
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        if self._reply is not None:
            return
        if status == _SWITCHING:
            self._problem = "it switches to another protocol"
        elif status >= 200:
            self._status = status
            self._problem = self._problem or _why_refused(version, self._headers)
        elif status < 100 or version not in _VERSIONS:
            self._problem = "this is not HTTP/1.1"

    def on_body(self, piece: bytes) -> None:
        """Some of the body."""
        self._in_body += len(piece)
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """The end of an interim reply, of the reply, or of something after it."""
        assert self._parser is not None
        if self._status and self._reply is None:
            keep_alive = self._parser.should_keep_alive()  # the parser knows it only now
            self._reply = HttpReply(self._status, self._headers, b"".join(self._pieces), keep_alive)


def _why_refused(version: str, headers: Mapping[str, str]) -> str:
    """What the parser forgives."""
    if version not in _VERSIONS:
        return "this is not HTTP/1.1"
    coding = headers.get(_CODING)
    if coding is not None and (coding.lower() != "chunked" or version == "1.0"):
        return f"its {_CODING} is {coding[:_SHOWN]!r} in HTTP/{version}"
    if int(headers.get(_LENGTH, 0)) > MOST_BODY:
        return f"its body has more than {MOST_BODY} bytes"
    return ""
