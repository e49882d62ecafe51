"""The TLS context of a server whose certificate is rotated at run time.

Each handshake gets the current certificate: a rotation needs no restart and breaks no connection.
Certificates in files (such as those mounted from a Secret) are checked at the handshake, so that nothing has
to poll.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from grove.kube.certs.certificates import KeyPair, issue_authority, issue_serving, needs_rotation
from grove.kube.errors import ConfigError
from grove.logger import get_logger

log = get_logger("grove.kube.certs.serving_context")


class ServingContext:
    """`context` is given to the server once; `use` changes the certificate of later handshakes."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.sni_callback = self._on_handshake
        self._current: ssl.SSLContext | None = None
        self.current_pair: KeyPair | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a certificate to serve."""
        return self._current is not None

    def use(self, pair: KeyPair) -> None:
        """Serve this certificate from the next handshake on. Raises ConfigError for an invalid pair, and then
        the old one stays."""
        fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        fresh.minimum_version = ssl.TLSVersion.TLSv1_2
        with _as_file(pair.certificate + pair.key) as path:
            try:
                fresh.load_cert_chain(path)
            except ssl.SSLError as problem:
                raise ConfigError(
                    f"the serving certificate and its key cannot be used ({problem.reason}): give a PEM pair"
                ) from problem
        self._current, self.current_pair = fresh, pair

    def before_handshake(self) -> None:
        """Called before each handshake, for subclasses that check for a newer certificate."""

    def _on_handshake(
        self, connection: ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext
    ) -> int | None:
        self.before_handshake()
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = self._current
        return None


class FileServingContext(ServingContext):
    """Serves the certificate in two files, and reads them again when they are replaced."""

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__()
        self._files = (certificate, key)
        self._loaded: tuple[object, ...] = ()
        try:
            self._load(self._fingerprint())
        except OSError as problem:
            raise ConfigError(
                f"{problem.filename} cannot be read ({problem.strerror}): mount the serving certificate there"
            ) from problem

    def before_handshake(self) -> None:
        """Read the files if they changed; half-written ones are read again at the next handshake."""
        try:
            found = self._fingerprint()
            if found != self._loaded:
                self._load(found)
        except (OSError, ConfigError) as problem:
            log.warning(
                "certificate files cannot be used", action="keep the old certificate", reason=str(problem)
            )

    def _fingerprint(self) -> tuple[object, ...]:
        return tuple((s.st_mtime_ns, s.st_size, s.st_ino) for s in map(os.stat, self._files))

    def _load(self, found: tuple[object, ...]) -> None:
        certificate, key = (file.read_bytes() for file in self._files)
        self.use(KeyPair(certificate, key))
        self._loaded = found


class SelfSignedContext(ServingContext):
    """Serves a certificate of an authority that exists only in memory, and issues another one when due."""

    def __init__(self, *hosts: str) -> None:
        super().__init__()
        self._hosts = hosts
        self.before_handshake()

    def before_handshake(self) -> None:
        """Issue a certificate if there is none, or if it is due."""
        now = datetime.now(UTC)
        if self.current_pair is None or needs_rotation(self.current_pair.certificate, now):
            self.use(issue_serving(issue_authority(now), self._hosts, now))


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path with the content, since OpenSSL reads only paths. On Linux the key is never on disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        with open(descriptor, "wb") as memory:  # noqa: PTH123 - it has no path
            memory.write(content)
            memory.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
