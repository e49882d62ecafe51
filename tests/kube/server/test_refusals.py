"""What servers refuse is counted always, and logged at a bounded rate."""

from __future__ import annotations

from aiohttp.http_exceptions import BadHttpMessage
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from grove import timing
from grove.kube.server.refusals import Refusal, Refusals, RequestLogger


def count(server: str, reason: Refusal) -> float:
    labels = {"server": server, "reason": reason.value}
    return REGISTRY.get_sample_value("grove_http_refused_total", labels) or 0.0


def test_one_line_an_interval_with_the_number_of_others() -> None:
    now = 0.0
    refusals = Refusals("one", lambda: now)
    with capture_logs() as logs:
        for _ in range(1000):
            refusals.record(Refusal.MALFORMED, "a\n\x1b[31mb" * 1000, "10.0.0.1")
        refusals.record(Refusal.HANDSHAKE, "no TLS")
        now = timing.REFUSAL_LOG_INTERVAL
        refusals.record(Refusal.MALFORMED, "again")
    assert [line.get("unlogged") for line in logs] == [None, None, 999]
    assert logs[0]["reason"].startswith("a \\x1b[31mb")
    assert len(logs[0]["reason"]) <= 4 * timing.REFUSAL_SHOWN
    assert count("one", Refusal.MALFORMED) == 1001


def test_bug_of_a_handler_is_logged_with_its_traceback() -> None:
    logger = RequestLogger(Refusals("two"))
    with capture_logs() as logs:
        logger.exception("Error handling request from %s", "10.0.0.1", exc_info=ZeroDivisionError())
        logger.exception("Error handling request from %s", "10.0.0.1", exc_info=BadHttpMessage("wrong"))
        logger.exception("Error handling request from %s", "10.0.0.1", exc_info=ConnectionResetError())
    assert [(line["event"], "exc_info" in line) for line in logs] == [
        ("request failed", True),
        ("refused", False),
    ]
