"""A certificate authority for tests of TLS: issues valid, expired and misnamed certificates quickly."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from grove.kube.auth.credentials import Certificate


class Authority:
    """A certificate authority that issues test certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("test authority")
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), timedelta(days=1))
            .add_extension(constraint, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, name: str, valid: timedelta = timedelta(hours=1), address: str = "127.0.0.1"
    ) -> Certificate:
        """A certificate and key for a name and an address; a negative validity has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
        )
        certificate = (
            _builder(_named(name), self._name, key.public_key(), valid)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Certificate(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )

    def server_context(self, pair: Certificate) -> ssl.SSLContext:
        """A TLS server context with the pair, which asks clients for a certificate of this authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        with tempfile.TemporaryDirectory() as folder:
            chain, key = Path(folder) / "chain", Path(folder) / "key"
            chain.write_bytes(pair.chain)
            key.write_bytes(pair.key)
            context.load_cert_chain(chain, key)
        return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + valid)
    )
