"""Credentials for the API server: a bearer token, a client certificate, a password, or those of a plugin.

The transport calls `current()` before every request, so that rotation needs no restart. The same object is
returned while nothing changed: another one means that new connections have to be opened.
"""

from __future__ import annotations

import base64
from typing import Protocol

from msgspec import Struct

from grove.kube.auth.secret_source import SecretSource
from grove.kube.errors import ConfigError


class Certificate(Struct, frozen=True):
    """A client certificate chain and its key, both PEM."""

    chain: bytes
    key: bytes


class Credential(Struct, frozen=True):
    """What one request presents: an Authorization header, a certificate, both or neither."""

    authorization: str | None = None
    certificate: Certificate | None = None


class Credentials(Protocol):
    """A source of credentials that may change at run time."""

    async def current(self) -> Credential:
        """The credential for the next request."""
        ...

    def invalidate(self) -> None:
        """The server rejected the credential: read or request a new one next time."""
        ...


class StaticCredentials:
    """Credentials that the kubeconfig names directly, inline or by file."""

    def __init__(
        self,
        *,
        token: SecretSource | None = None,
        chain: SecretSource | None = None,
        key: SecretSource | None = None,
        basic: tuple[str, str] | None = None,
    ) -> None:
        if (chain is None) != (key is None):
            raise ConfigError(
                "a client certificate needs its key: set client-certificate and client-key both"
            )
        self._token = token
        self._chain = chain
        self._key = key
        self._sources = [source for source in (token, chain, key) if source is not None]
        self._basic = _basic(*basic) if basic else None
        self._read: list[bytes] | None = None
        self._credential = Credential()

    async def current(self) -> Credential:
        """The credential, rebuilt only when a file behind it changed."""
        read = [source.read() for source in self._sources]
        if read != self._read:
            self._credential = self._build_credential()
            self._read = read
        return self._credential

    def invalidate(self) -> None:
        """Read every file again next time."""
        for source in self._sources:
            source.invalidate()

    def _build_credential(self) -> Credential:
        certificate = None
        if self._chain is not None and self._key is not None:
            certificate = Certificate(self._chain.read(), self._key.read())
        return Credential(bearer_header(self._token.read()) if self._token else self._basic, certificate)


def bearer_header(token: bytes | str) -> str:
    """The Authorization header of a token. Raises ConfigError for a token that would break the header."""
    text = (token.decode("utf-8", "replace") if isinstance(token, bytes) else token).strip()
    if not text or not text.isprintable() or not text.isascii():
        raise ConfigError(
            "the bearer token is empty or not a token: check the token or tokenFile of the user"
        )
    return f"Bearer {text}"


def _basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
