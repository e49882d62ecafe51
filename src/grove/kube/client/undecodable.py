"""Objects that exist in the API server and cannot be decoded: their metadata and the reason.

Such an object is skipped, for the reflector and for lists. Only its metadata are read, also when the rest is
nested too deeply or does not fit its type. The API server writes `metadata` before `spec`, so that only the
first part of the text is scanned.
"""

from __future__ import annotations

import re
from itertools import islice

import msgspec
from msgspec import Struct

from grove import timing
from grove.api.json_depth import TOO_DEEP, too_deep
from grove.api.meta import ObjectMeta
from grove.kube.client.resource import Resource
from grove.logger import get_logger

log = get_logger("grove.kube")

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{}]', re.DOTALL)
_KEPT_LEVELS = 4  # of the metadata: ownerReferences need two
_ITEM = 3  # the depth of an item: in the array `items` of a list
_metadata = msgspec.json.Decoder(ObjectMeta)


class Undecodable(Struct, frozen=True):
    """An object that is skipped. `metadata` has no name if the metadata cannot be read either."""

    reason: str
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name


def undecodable(text: bytes, problem: Exception | None, *, level: int = 1) -> Undecodable:
    """The metadata of an object and why it cannot be decoded. `level` is the depth of its fields: 1 for the
    object alone, 2 inside of a watch event. Without a `problem` it is nested too deeply."""
    reason = TOO_DEEP if problem is None or too_deep(text) else " ".join(str(problem).split())
    found = _metadata_text(text, level)
    try:
        return Undecodable(reason, _metadata.decode(found) if found else ObjectMeta())
    except Exception:  # metadata that does not fit its own type either
        return Undecodable(reason)


def log_skipped(found: Undecodable, resource: Resource) -> None:
    """Log an object that is skipped, with its reason."""
    key = "/".join(filter(None, found.key)) or "unknown"
    log.warning("object skipped", key=key, action="decode", reason=found.reason, resource=resource.label)


def count_skipped(resource: Resource) -> None:
    """Count an object that is skipped."""
    from grove.kube.metrics import undecodable_total  # most commands meet no such object

    undecodable_total.labels(resource.label).inc()


def _metadata_text(text: bytes, level: int) -> bytes:
    """The value of `metadata`, with deeply nested values replaced by null; empty if it is not found."""
    depth, begun, copied, cut = 0, False, 0, 0
    pieces: list[bytes] = []
    for token in islice(_TOKEN.finditer(text), timing.UNDECODABLE_TOKENS):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if begun and depth == level + _KEPT_LEVELS:
                    cut = token.start()
            case b"}" | b"]":
                if begun and depth == level + _KEPT_LEVELS:
                    pieces += (text[copied:cut], b"null")
                    copied = token.end()
                depth -= 1
                if begun and depth == level:
                    return b"".join((*pieces, text[copied : token.end()]))
            case b'"metadata"' if depth == level and not begun:
                begun, copied = True, text.find(b"{", token.end())
    return b""


def item_spans(text: bytes) -> list[tuple[int, int]]:
    """Where each item of a list begins and ends, found without decoding any of them."""
    spans: list[tuple[int, int]] = []
    depth, begun, begin = 0, False, 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if begun and depth == _ITEM:
                    begin = token.start()
            case b"}" | b"]":
                if begun and depth == _ITEM:
                    spans.append((begin, token.end()))
                depth -= 1
                if begun and depth < _ITEM - 1:
                    return spans
            case b'"items"' if depth == 1:
                begun = True
    return spans
