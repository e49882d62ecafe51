"""Replies are parsed in any pieces; anything that is not exactly a reply is rejected, also if it is
endless."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove import timing
from grove.kube.client.http_reply import BadReply, HttpReply, ReplyParser
from tests.fuzzing import budget

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\nRETRY-AFTER:  7 \r\n\r\n"
    b"3;note=x\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n"
REPLIES = {
    PLAIN: (200, b"hello", True),
    CHUNKED: (201, b"hello", True),
    CHUNKS + b"5\r\nhello\r\n0\r\n\r\n": (200, b"hello", True),
    CHUNKS + b"0005\r\nhello\r\n00\r\n\r\n": (200, b"hello", True),
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN: (200, b"hello", True),
    b"HTTP/1.1 100 Continue\r\n\r\n" * 9 + PLAIN: (200, b"hello", True),
    b"HTTP/1.1 204 No Content\r\n\r\n": (204, b"", True),
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n": (304, b"", True),
    OK + b"Content-Length: 0\r\n\r\n": (200, b"", True),
    OK + b"Empty:\r\nContent-Length: 5\r\n\r\nhello": (200, b"hello", True),
    OK + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello": (200, b"hello", False),
    OK + b"Content-Length: 5\r\nConnection: x\r\nConnection: close\r\n\r\nhello": (200, b"hello", False),
    b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello": (200, b"hello", False),
}


def feed_all(sent: bytes, cuts: list[int]) -> HttpReply | None:
    """The reply in bytes that arrive in pieces, cut at these places."""
    parser, found = ReplyParser(), list[HttpReply]()
    for begin, end in pairwise(sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})):
        assert not found, "the reply is complete before its end"
        if (reply := parser.feed(sent[begin:end])) is not None:
            found.append(reply)
    return found[0] if found else None


@budget(100)
@given(st.sampled_from(sorted(REPLIES)), st.lists(st.integers(0, 140)))
def test_reply_is_the_same_in_any_pieces(sent: bytes, cuts: list[int]) -> None:
    reply = feed_all(sent, cuts)
    assert reply is not None
    assert (reply.status, reply.body, reply.keep_alive) == REPLIES[sent]


def test_header_names_are_case_insensitive() -> None:
    reply = ReplyParser().feed(CHUNKED)
    assert reply is not None
    assert reply.headers["Retry-After"] == "7"
    assert "Trailer" not in reply.headers


def test_reply_without_length_ends_with_connection() -> None:
    parser = ReplyParser()
    assert parser.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert parser.feed(b"lo") is None
    reply = parser.end()
    assert reply is not None
    assert (reply.body, reply.keep_alive) == (b"hello", False)


@pytest.mark.parametrize(
    "sent", [PLAIN[:-1], CHUNKED[:-2], PLAIN[:20], b"", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_incomplete_reply_is_none(sent: bytes) -> None:
    parser = ReplyParser()
    assert parser.feed(sent) is None
    assert parser.end() is None


def feed_each(parser: ReplyParser, pieces: list[bytes]) -> None:
    for piece in pieces:
        assert parser.feed(piece) is None


INVALID_REPLIES = [
    b"SSH-2.0-OpenSSH\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x15\x03\x01\x00\x02\x02\x16",
    b"HTTP/2.0 200 OK\r\n\r\n",
    b"HTTP/0.9 200 OK\r\n\r\n",
    b"HTTP/1.1 what\r\n\r\n",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n",
    b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 -20 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    OK + b"Content-Length: many\r\n\r\n",
    OK + b"Content-Length: -5\r\n\r\nhello",
    OK + b"Content-Length: +5\r\n\r\nhello",
    OK + b"Content-Length: 1_0\r\n\r\nhellohello",
    OK + b"Content-Length: \xb2\r\n\r\nhello",
    OK + b"Content-Length: 0x5\r\n\r\nhello",
    OK + b"Content-Length:\r\n\r\nhello",
    OK + b"Content-Length: 5, 5\r\n\r\nhello",
    OK + b"Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello",
    OK + b"Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello",
    OK + b"Content-Length: %d\r\n\r\n" % (timing.MAX_REPLY_BODY + 1),
    OK + b"Content-Length: 18446744073709551621\r\n\r\nhello",
    OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: identity\r\n\r\nhello",
    b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"A: b\r\n folded\r\nContent-Length: 0\r\n\r\n",
    OK + b"A: b\rc\r\nContent-Length: 0\r\n\r\n",
    OK + b"A: b\x00c\r\nContent-Length: 0\r\n\r\n",
    OK + b"no colon\r\nContent-Length: 0\r\n\r\n",
    OK + b": no name\r\nContent-Length: 0\r\n\r\n",
    OK + b"Content-Length : 0\r\n\r\n",
    *(
        CHUNKS + size + b"\r\nhello\r\n0\r\n\r\n"
        for size in (b"zz", b"-5", b"-0", b"+5", b"0x5", b"0_5", b" 5", b"5 ", b"", b"5\t", b"5\x00", b"\xb2")
    ),
    CHUNKS + b"f" * 17 + b"\r\n",
    CHUNKS + b"5\nhello\n0\n\n",
    CHUNKS + b"5\r\nhello0\r\n\r\n",
    CHUNKS + b"5\r\nhelloXX0\r\n\r\n",
    CHUNKS + b"5\r\nhello\n0\r\n\r\n",
    CHUNKS + b"5;a=b\nhello\r\n0\r\n\r\n",
    CHUNKS + b"0\r\nno colon\r\n\r\n",
    CHUNKS + b"0\r\nContent-Length: 7\r\n\r\n",
]


@pytest.mark.parametrize("pieces", ["whole", "bytes"])
@pytest.mark.parametrize("sent", INVALID_REPLIES, ids=lambda sent: repr(sent)[:60])
def test_invalid_reply_is_rejected(sent: bytes, pieces: str) -> None:
    step = len(sent) if pieces == "whole" else 1
    with pytest.raises(BadReply) as caught:
        feed_each(ReplyParser(), [sent[at : at + step] for at in range(0, len(sent), step)])
    message = str(caught.value)
    assert message
    assert len(message.splitlines()) == 1
    assert len(message) < 200


ENDLESS = {
    "head": (b"", b"x"),
    "headers": (OK, b"A: b\r\n"),
    "one header": (OK + b"A: ", b"b"),
    "lines before the head": (b"", b"\r\n"),
    "interim replies": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk extension": (CHUNKS + b"5;a=", b"b"),
    "zeros of a chunk size": (CHUNKS, b"0"),
    "tiny chunks": (CHUNKS, b"1\r\na\r\n"),
    "small chunks": (CHUNKS, b"10;a=bcdef\r\n0123456789abcdef\r\n"),
    "trailers": (CHUNKS + b"0\r\n", b"A: b\r\n"),
    "body": (OK + b"\r\n", b"a" * 1_000),
    "chunks": (CHUNKS, b"400\r\n" + b"a" * 1024 + b"\r\n"),
}


@pytest.mark.parametrize("at_once", [1, 1_000])
@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
def test_endless_reply_is_rejected(
    begin: bytes, more: bytes, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "MAX_REPLY_BODY", 200_000)
    parser = ReplyParser()
    parser.feed(begin)
    limit = 200_000 + timing.MAX_REPLY_OVERHEAD * 4
    with pytest.raises(BadReply):
        feed_each(parser, [more * at_once] * (limit // (len(more) * at_once) + 2))


def test_long_chunked_body_is_accepted() -> None:
    parser = ReplyParser()
    parser.feed(CHUNKS)
    for _ in range(10_000):
        assert parser.feed(b"200\r\n" + b"a" * 512 + b"\r\n") is None
    reply = parser.feed(b"0\r\n\r\n")
    assert reply is not None
    assert len(reply.body) == 10_000 * 512


@pytest.mark.parametrize("more", [b"more", PLAIN, b"HTTP/2.0 200 OK\r\n\r\n", b"\x00" * 1_000])
def test_connection_with_extra_bytes_is_not_reused(more: bytes) -> None:
    reply = ReplyParser().feed(PLAIN + more)
    assert reply is not None
    assert (reply.status, reply.body, reply.keep_alive) == (200, b"hello", False)
