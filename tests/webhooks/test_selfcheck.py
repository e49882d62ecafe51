"""Whether a caller would be answered, found by calling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from grove.kube.certificates import KeyPair, issue_authority, issue_serving
from grove.kube.serving import ServingContext
from grove.webhooks import selfcheck, server
from grove.webhooks.callers import Caller
from tests.webhooks.asking import reviewer

NOW = datetime.now(UTC)
AUTHORITY, OTHER = issue_authority(NOW), issue_authority(NOW)
HOST = "grove-operator.grove-system.svc"


@asynccontextmanager
async def serving(pair: KeyPair | None) -> AsyncIterator[tuple[str, int]]:
    context = ServingContext()
    if pair is not None:
        context.show(pair)
    runner = server.runner(server.application(reviewer()))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context.context).start()
    yield "127.0.0.1", runner.addresses[0][1]
    await runner.cleanup()


GOOD = issue_serving(AUTHORITY, (HOST,), NOW)
EXPIRED = issue_serving(AUTHORITY, (HOST,), NOW - timedelta(days=3), timedelta(days=1))
TRUST = AUTHORITY.certificate


@pytest.mark.parametrize(
    ("pair", "caller", "words"),
    [
        (GOOD, Caller(HOST, TRUST), ""),
        (GOOD, Caller(HOST, OTHER.certificate + TRUST), ""),
        (GOOD, None, ""),
        (
            GOOD,
            Caller(HOST, OTHER.certificate),
            f"webhooks whose certificate the API server trusts as {HOST} (",
        ),
        (GOOD, Caller(HOST, b""), f"webhooks whose certificate the API server trusts as {HOST} ("),
        (
            GOOD,
            Caller("another.svc", TRUST),
            "webhooks whose certificate the API server trusts as another.svc (",
        ),
        (
            EXPIRED,
            Caller(HOST, TRUST),
            f"webhooks whose certificate the API server trusts as {HOST} (certificate has",
        ),
        (None, Caller(HOST, TRUST), "webhooks that answer ("),
        (GOOD, Caller(HOST, b"no PEM"), "webhooks that answer ("),
        (GOOD, Caller(HOST, b"\xff"), "webhooks that answer ("),
    ],
)
async def test_what_a_caller_waits_for(pair, caller, words):
    async with serving(pair) as address:
        said = await selfcheck.trouble(address, caller)
    assert said.startswith(words)
    assert bool(said) == bool(words)
    assert len(said.splitlines()) <= 1


async def test_nobody_there():
    assert (await selfcheck.trouble(("127.0.0.1", 1), None)).startswith("webhooks that answer (")
