"""When a certificate expires, read from its PEM text.

Python's ssl loads certificates and does not report when they expire. The cryptography package does, and takes
8 MiB of memory and a twentieth of a second to import. The structure is that of RFC 5280, section 4.1.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17  # tags of DER; the version is the only field that may be absent
_VALIDITY = 3  # its position, after serial number, signature algorithm and issuer


def not_valid_after(chain: bytes) -> datetime:
    """When the first certificate of a PEM chain expires. Raises ValueError if it is not a certificate."""
    if (found := _PEM.search(chain)) is None:
        raise ValueError("no certificate")
    (_, certificate), *_ = _elements(base64.b64decode(found[1]))
    (_, signed), *_ = _elements(certificate)
    fields = [content for tag, content in _elements(signed) if tag != _VERSION]
    if len(fields) <= _VALIDITY:
        raise ValueError("a field is missing")
    _, (tag, written) = _elements(fields[_VALIDITY])
    text = written.decode("ascii")
    century = ("20" if text < "50" else "19") if tag == _UTC_TIME else ""
    return datetime.strptime(century + text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements of a DER sequence: tag and content of each. Raises ValueError if they are cut off."""
    position = 0
    while position < len(der):
        tag, length = der[position], der[position + 1] if position + 1 < len(der) else 0
        position += 2
        if length & 0x80:  # a long form: so many bytes have the length
            begin, position = position, position + (length & 0x7F)
            length = int.from_bytes(der[begin:position])
        content = der[position : position + length]
        if len(content) < length:
            raise ValueError("cut off")
        yield tag, content
        position += length
