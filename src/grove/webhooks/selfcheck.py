"""Checks, for the readiness probe, whether the webhooks answer: calls them over TLS as an API server does,
with the CA that the API server trusts."""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache

from grove import timing
from grove.webhooks.configuration_watch import WebhookClientConfig
from grove.webhooks.server import HEALTH

_REQUEST = f"GET {HEALTH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


async def failure(address: tuple[str, int], client_config: WebhookClientConfig | None) -> str:
    """What the API server still waits for with this client configuration; empty if the webhooks answer.
    Without a client configuration, the certificate is not verified."""
    name = client_config.host if client_config else ""
    try:
        context = _context(client_config.ca_bundle if client_config else None)
        async with asyncio.timeout(timing.SELF_CHECK_TIMEOUT):
            reader, writer = await asyncio.open_connection(
                *address, ssl=context, server_hostname=name or "localhost"
            )
            try:
                writer.write(_REQUEST)
                status = await reader.readline()
            finally:
                writer.transport.abort()
    except ssl.SSLCertVerificationError as problem:
        return f"webhooks whose certificate the API server trusts as {name} ({problem.verify_message})"
    except TimeoutError:
        return f"webhooks that answer within {timing.SELF_CHECK_TIMEOUT:g} s"
    except (OSError, ValueError) as problem:
        return f"webhooks that answer ({_one_line(problem)})"
    return "" if b" 200 " in status else "webhooks that answer"


@lru_cache(maxsize=8)
def _context(ca_bundle: bytes | None) -> ssl.SSLContext:
    if ca_bundle is None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context = ssl.create_default_context(cadata=ca_bundle.decode("ascii") if ca_bundle else None)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # API servers are not that strict
    return context


def _one_line(problem: Exception) -> str:
    reason = problem.reason if isinstance(problem, ssl.SSLError) else getattr(problem, "strerror", "")
    return " ".join(str(reason or problem).split())
