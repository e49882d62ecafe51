"""Objects that nest too deeply to be decoded: found in the text of a review, and given another apiVersion.

Admission refuses such objects, but they may be stored without it. All work is linear in the size of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grove.webhooks.admission_review import InvalidReview

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENING = b"{["
_IN_REQUEST = 2  # the depth of the request's fields in a review
_COLON = re.compile(rb"\s*+:\s*+")


def objects_in(review: bytes) -> tuple[bytes, list[bytes]]:
    """The review without its objects, and the text of each object. Raises InvalidReview."""
    begin = next(_values(review, b'"objects"', _IN_REQUEST), None)
    if begin is None or review[begin : begin + 1] != b"[":
        raise InvalidReview("nests too deeply, and has no list of objects")
    found: list[bytes] = []
    depth, start = 0, begin
    for token in _TOKENS.finditer(review, begin):
        if token[0][0] in _OPENING:
            depth += 1
            start = token.start() if depth == _IN_REQUEST else start
        elif token[0][0] in b"}]":
            depth -= 1
            if depth == 1:
                found.append(review[start : token.end()])
            elif depth == 0:
                return review[: begin + 1] + review[token.start() :], found
    raise InvalidReview("ends in the middle of its objects")


def with_api_version(text: bytes, api_version: str) -> bytes:
    """The object with another apiVersion. Raises ValueError if it has none."""
    begin = next(_values(text, b'"apiVersion"', 1), None)
    value = _TOKENS.match(text, begin) if begin is not None else None
    if value is None or value[0][:1] != b'"':
        raise ValueError("an object without apiVersion")
    return text[: value.start()] + b'"' + api_version.encode() + b'"' + text[value.end() :]


def _values(text: bytes, key: bytes, at: int) -> Iterator[int]:
    """Where the values of a key begin, at a depth."""
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0][0] in _OPENING:
            depth += 1
        elif token[0][0] in b"}]":
            depth -= 1
        elif depth == at and token[0] == key and (colon := _COLON.match(text, token.end())):
            yield colon.end()
