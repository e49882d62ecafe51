"""Certificates for serving webhooks: how they are issued and checked, and when they are rotated.

Nothing here reads a clock, a file or a Secret: time is an argument and certificates are PEM bytes. When to
rotate depends on the certificates alone, so that every replica decides the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from grove import timing

AUTHORITY_LIFETIME = timedelta(days=timing.AUTHORITY_LIFETIME_DAYS)
SERVING_LIFETIME = timedelta(days=timing.SERVING_LIFETIME_DAYS)
_BACKDATED = timedelta(seconds=timing.CERTIFICATE_BACKDATED)
_COMMON_NAME_PREFIX = "grove webhooks"
_EXPIRED = datetime.min.replace(tzinfo=UTC)


class KeyPair(Struct, frozen=True):
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes


class ServingCredentials(Struct, frozen=True):
    """What a webhook server needs. Replicas may still serve certificates of the `previous_authorities`."""

    authority: KeyPair
    serving: KeyPair
    previous_authorities: tuple[bytes, ...] = ()

    @property
    def ca_bundle(self) -> bytes:
        """The caBundle: the current authority first, then the previous ones."""
        return b"".join((self.authority.certificate, *self.previous_authorities))


def rotation_time(certificate: bytes) -> datetime:
    """When a certificate is due for rotation: well before it expires. An invalid one is always due."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return _EXPIRED
    begins, ends = parsed.not_valid_before_utc, parsed.not_valid_after_utc
    return begins + (ends - begins) * timing.CERTIFICATE_ROTATION


def needs_rotation(certificate: bytes, now: datetime) -> bool:
    """Whether a certificate is due for rotation."""
    return now >= rotation_time(certificate)


def is_valid_for(serving: KeyPair, authority: bytes, hosts: Iterable[str]) -> bool:
    """Whether a key pair can serve the hosts to a client that trusts the authority."""
    try:
        certificate = x509.load_pem_x509_certificate(serving.certificate)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound, InvalidSignature):
        return False
    return _key_matches(serving) and set(_alternative_names(hosts)) <= set(names)


def rotate_if_due(
    known: ServingCredentials | None, hosts: tuple[str, ...], now: datetime, known_authorities: bytes = b""
) -> ServingCredentials:
    """The same credentials if they are valid, otherwise with new parts where they are not. Without
    credentials, those of the `known_authorities` that this project issued become `previous_authorities`:
    another replica may still serve a certificate of them."""
    if known is None:
        authority = issue_authority(now)
        return ServingCredentials(
            authority,
            issue_serving(authority, hosts, now),
            _still_valid(_own_authorities(known_authorities), now),
        )
    authority, previous_authorities = known.authority, _still_valid(known.previous_authorities, now)
    if needs_rotation(authority.certificate, now) or not _key_matches(authority):
        previous_authorities = _still_valid((authority.certificate,), now) + previous_authorities
        authority = issue_authority(now)
    serving = known.serving
    if needs_rotation(serving.certificate, now) or not is_valid_for(serving, authority.certificate, hosts):
        serving = issue_serving(authority, hosts, now)
    if (
        authority is known.authority
        and serving is known.serving
        and previous_authorities == known.previous_authorities
    ):
        return known
    return ServingCredentials(authority, serving, previous_authorities)


def next_rotation(credentials: ServingCredentials) -> datetime:
    """When the credentials are due for rotation."""
    return min(map(rotation_time, (credentials.authority.certificate, credentials.serving.certificate)))


def issue_authority(now: datetime, lifetime: timedelta = AUTHORITY_LIFETIME) -> KeyPair:
    """A new certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{_COMMON_NAME_PREFIX} {now:%Y-%m-%d}")])
    builder = (
        _builder(name, name, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
    )
    return _signed(builder, key, key)


def issue_serving(
    authority: KeyPair, hosts: Iterable[str], now: datetime, lifetime: timedelta = SERVING_LIFETIME
) -> KeyPair:
    """A new serving certificate for the hosts (names or addresses), signed by the authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = cast(CertificateIssuerPrivateKeyTypes, serialization.load_pem_private_key(authority.key, None))
    names = _alternative_names(hosts)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, str(names[0].value)[:64])])
    builder = (
        _builder(subject, issuer.subject, key, now, min(lifetime, issuer.not_valid_after_utc - now))
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return _signed(builder, key, signer)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: CertificateIssuerPrivateKeyTypes,
) -> KeyPair:
    return KeyPair(
        builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _alternative_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    return [_alternative_name(host) for host in hosts]


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_matches(pair: KeyPair) -> bool:
    """Whether the private key belongs to the certificate."""
    try:
        key = serialization.load_pem_private_key(pair.key, None)
        return key.public_key() == x509.load_pem_x509_certificate(pair.certificate).public_key()
    except (ValueError, TypeError):
        return False


def _own_authorities(bundle: bytes) -> tuple[bytes, ...]:
    """The authorities of a bundle that this project issued, each once."""
    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return ()
    own = (each for each in found if f"CN={_COMMON_NAME_PREFIX} " in each.subject.rfc4514_string())
    return tuple(dict.fromkeys(each.public_bytes(serialization.Encoding.PEM) for each in own))


def is_issued_by(serving: KeyPair, ca_bundle: bytes) -> bool:
    """Whether one of these authorities issued the serving certificate."""
    try:
        certificate = x509.load_pem_x509_certificate(serving.certificate)
        authorities = x509.load_pem_x509_certificates(ca_bundle)
    except ValueError:
        return False
    return any(_issued(certificate, authority) for authority in authorities)


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _still_valid(certificates: tuple[bytes, ...], now: datetime) -> tuple[bytes, ...]:
    return tuple(certificate for certificate in certificates if _valid_until(certificate) > now)


def _valid_until(certificate: bytes) -> datetime:
    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        return _EXPIRED
