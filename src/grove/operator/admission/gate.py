"""Holds an operator that does not serve the webhooks back from being ready until another process does.

When an operator that served them is upgraded, its pods are replaced as soon as new ones are ready. So a new
one is ready only after the webhooks answer elsewhere: at no time does the API server find none.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from grove.kube.errors import ConfigError
from grove.webhooks import selfcheck


class AdmissionGate:
    """Whether the admission process has answered once. After that, the operator does not depend on it."""

    def __init__(self, url: str) -> None:
        self._address, self._url = _address(url), url
        self._answered = False

    async def not_ready_reasons(self) -> list[str]:
        """What is missing at the start; empty if the webhooks answer, or have answered before."""
        if self._answered:
            return []
        why = await selfcheck.failure(self._address, None)
        self._answered = not why
        return [f"{why} at {self._url}"] if why else []


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        if parts.scheme == "https" and parts.hostname and parts.port:
            return parts.hostname, parts.port
    except ValueError:  # the port is no number
        pass
    raise ConfigError(f"--admission {url}: not an address: write https://HOST:PORT")
