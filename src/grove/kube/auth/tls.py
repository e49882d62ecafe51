"""TLS contexts of client connections: the trusted authorities and the client certificate.

Certificates are checked before they are used: an API server answers an expired client certificate with a bare
401, which does not name the cause.
"""

from __future__ import annotations

import ssl
import tempfile
from asyncio import sslproto
from datetime import UTC, datetime
from pathlib import Path

from grove.kube.auth.certificate_expiry import not_valid_after
from grove.kube.auth.credentials import Certificate
from grove.kube.errors import ConfigError

# asyncio keeps 256 KiB for each connection, and allocates as much again at every read, which is so much that
# the allocator asks the kernel. What is read at once is one TLS record: 16 KiB, with its header and its MAC.
sslproto.SSLProtocol.max_size = 17 * 1024


def context(authority: bytes | None, certificate: Certificate | None, *, insecure: bool) -> ssl.SSLContext:
    """A client context. Without an authority it trusts the system's; only `insecure` trusts all servers."""
    context_ = _client_context(authority)
    # The authorities of kubeadm and of many clusters lack extensions that newer Pythons require by default.
    context_.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context_.check_hostname = False
        context_.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_client_certificate(context_, certificate)
    return context_


def _client_context(authority: bytes | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=None if authority is None else authority.decode())
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            "the certificate authority is not a PEM certificate: generate the kubeconfig again"
        ) from None


def _load_client_certificate(context_: ssl.SSLContext, certificate: Certificate) -> None:
    try:
        expires = not_valid_after(certificate.chain)
    except ValueError:
        raise ConfigError(
            "the client certificate is not a PEM certificate: generate the kubeconfig again"
        ) from None
    if expires < datetime.now(UTC):
        raise ConfigError(f"the client certificate expired on {expires:%Y-%m-%d %H:%M} UTC: renew it")
    # Python's ssl loads keys from files only; these exist during the call, readable by this user alone.
    with tempfile.TemporaryDirectory() as folder:
        chain, key = Path(folder) / "chain.pem", Path(folder) / "key.pem"
        chain.write_bytes(certificate.chain)
        key.touch(mode=0o600)
        key.write_bytes(certificate.key)
        try:
            context_.load_cert_chain(chain, key, password=_no_password)
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                "the client key does not match its certificate: generate the kubeconfig again"
            ) from None


def _no_password() -> str:
    raise ValueError("the client key is encrypted: passwords are not asked for on a terminal")
