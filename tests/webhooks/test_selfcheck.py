"""The self-check calls the webhooks as an API server does, and reports why they would fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from grove.kube.certs.certificates import KeyPair, issue_authority, issue_serving
from grove.kube.certs.serving_context import ServingContext
from grove.webhooks import selfcheck
from grove.webhooks.configuration_watch import WebhookClientConfig
from tests.webhooks import http_server
from tests.webhooks.reviews import reviewer

NOW = datetime.now(UTC)
AUTHORITY, OTHER = issue_authority(NOW), issue_authority(NOW)
HOST = "grove-operator.grove-system.svc"


@asynccontextmanager
async def serving(pair: KeyPair | None) -> AsyncIterator[tuple[str, int]]:
    context = ServingContext()
    if pair is not None:
        context.use(pair)
    async with http_server.serving(reviewer(), context.context) as address:
        yield address


GOOD = issue_serving(AUTHORITY, (HOST,), NOW)
EXPIRED = issue_serving(AUTHORITY, (HOST,), NOW - timedelta(days=3), timedelta(days=1))
TRUST = AUTHORITY.certificate


@pytest.mark.parametrize(
    ("pair", "client_config", "message"),
    [
        (GOOD, WebhookClientConfig(HOST, TRUST), ""),
        (GOOD, WebhookClientConfig(HOST, OTHER.certificate + TRUST), ""),
        (GOOD, None, ""),
        (
            GOOD,
            WebhookClientConfig(HOST, OTHER.certificate),
            f"webhooks whose certificate the API server trusts as {HOST} (",
        ),
        (
            GOOD,
            WebhookClientConfig(HOST, b""),
            f"webhooks whose certificate the API server trusts as {HOST} (",
        ),
        (
            GOOD,
            WebhookClientConfig("another.svc", TRUST),
            "webhooks whose certificate the API server trusts as another.svc (",
        ),
        (
            EXPIRED,
            WebhookClientConfig(HOST, TRUST),
            f"webhooks whose certificate the API server trusts as {HOST} (certificate has",
        ),
        (None, WebhookClientConfig(HOST, TRUST), "webhooks that answer ("),
        (GOOD, WebhookClientConfig(HOST, b"no PEM"), "webhooks that answer ("),
        (GOOD, WebhookClientConfig(HOST, b"\xff"), "webhooks that answer ("),
    ],
)
async def test_selfcheck_reports_untrusted_or_broken_tls(pair, client_config, message):
    async with serving(pair) as address:
        failure = await selfcheck.failure(address, client_config)
    assert failure.startswith(message)
    assert bool(failure) == bool(message)
    assert len(failure.splitlines()) <= 1


async def test_selfcheck_reports_refused_connection():
    assert (await selfcheck.failure(("127.0.0.1", 1), None)).startswith("webhooks that answer (")
