"""The end of a certificate's validity, compared with what the cryptography package reads."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from grove.kube.auth.certificate_expiry import not_valid_after

_BEGIN = datetime(1951, 1, 1)  # noqa: DTZ001 - hypothesis adds the zone
_ENDS = st.datetimes(_BEGIN, datetime(2120, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _certificate(ends: datetime, name: str = "me", serial: int = 1) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).serial_number(serial)
    dated = builder.not_valid_before(_BEGIN).not_valid_after(ends).public_key(_key().public_key())
    return dated.sign(_key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@given(_ENDS, st.text("ab ", min_size=1, max_size=64), st.integers(1, 2**159 - 1))
def test_expiry_equals_that_of_cryptography(ends: datetime, name: str, serial: int) -> None:
    assert not_valid_after(_certificate(ends, name, serial)) == ends.replace(microsecond=0)


def test_expiry_of_chain_is_that_of_first_certificate() -> None:
    first, second = datetime(2030, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
    assert not_valid_after(b"a comment\n" + _certificate(first) + _certificate(second)) == first


_PEM = _certificate(datetime(2030, 1, 1, tzinfo=UTC))
_LINES = _PEM.split(b"\n")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"none",
        _PEM.replace(b"CERTIFICATE", b"PRIVATE KEY"),
        b"\n".join((_LINES[0], *_LINES[2:])),  # its first line is missing
        b"\n".join((*_LINES[:-4], *_LINES[-2:])),  # cut off
        b"\n".join((_LINES[0], b"MAMCAQE=", *_LINES[-2:])),  # a sequence of one number
        b"\n".join((_LINES[0], b"MAA=", *_LINES[-2:])),  # an empty sequence
        b"\n".join((_LINES[0], b"MA==", *_LINES[-2:])),  # a tag without a length
    ],
)
def test_what_is_no_certificate_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of them: the caller names the remedy
        not_valid_after(text)


@given(st.integers(0, len(_PEM) - 1), st.binary(min_size=1, max_size=1), st.booleans())
def test_changed_certificate_is_read_or_a_value_error(position: int, byte: bytes, cut: bool) -> None:
    changed = _PEM[:position] + byte + _PEM[position + (1 if not cut else 40) :]
    try:
        found = not_valid_after(changed)
    except ValueError:
        return
    assert found.tzinfo is UTC
