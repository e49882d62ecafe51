"""Where tokens, keys and certificates are read from: inline text, or a file that is rotated by others.

The kubelet replaces service account tokens and cert-manager replaces certificates at run time. A file is
checked at most once a second (a stat per request would cost 3 % of a create), and at once after `invalidate`:
the server rejected its content.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from grove import timing
from grove.kube.errors import ConfigError


class SecretSource(Protocol):
    """Where a token, a key or a certificate comes from."""

    def read(self) -> bytes:
        """The content as of now; the same object as long as nothing changed."""
        ...

    def invalidate(self) -> None:
        """Check again at the next read: the server rejected what was read last."""
        ...


class InlineSource:
    """Content that the kubeconfig itself carries."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        """The content."""
        return self._content

    def invalidate(self) -> None:
        """Does nothing: inline content cannot change."""


class FileSource:
    """The content of a file, read again when the file is replaced or rewritten."""

    def __init__(self, path: Path, purpose: str) -> None:
        self._path = path
        self._purpose = purpose
        self._content = b""
        self._stamp: tuple[int, int, int] | None = None
        self._recheck_at = 0.0

    def read(self) -> bytes:
        """The content as of at most a second ago."""
        now = time.monotonic()
        if now < self._recheck_at:
            return self._content
        try:
            found = self._path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._content = self._path.read_bytes()
                self._stamp = stamp
        except OSError as problem:
            raise ConfigError(
                f"{self._purpose} {self._path} cannot be read ({problem.strerror}): check path and mode"
            ) from None
        self._recheck_at = now + timing.SECRET_FILE_RECHECK
        return self._content

    def invalidate(self) -> None:
        """Read the file itself next time, even if its stamp is the same."""
        self._recheck_at = 0.0
        self._stamp = None
