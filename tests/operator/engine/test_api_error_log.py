"""Rejected writes are logged once, whichever component rejects them; server errors are not logged here."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from grove.api.intents import Create, Target
from grove.kube.errors import ApiStatus, KubeError, LostReply, api_error
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.engine.api_error_log import ApiErrorLog
from grove.operator.engine.key_state import KeyState
from grove.operator.keys import ReplicaKey

KEY = ReplicaKey("n", "wl", 0)
WEBHOOK = 'Internal error occurred: failed calling webhook "slow.example.com": context deadline exceeded'


def outcome(error: KubeError) -> Outcome:
    owner = {"kind": "PodClique", "name": "wl-0-a"}
    intent = Create(Target("v1", "Pod", "wl-0-a-x", "n"), {"metadata": {"ownerReferences": [owner]}})
    return Outcome((Result(intent, IntentState.FAILED, "wl-0-a-x", error=error),))


def api_answer(code: int, reason: str, message: str = "no") -> KubeError:
    return api_error("create pods n", ApiStatus(code=code, reason=reason, message=message))


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (api_answer(403, "Forbidden"), 1),
        (api_answer(422, "Invalid"), 1),
        (api_answer(500, "InternalError", WEBHOOK), 1),
        (api_answer(500, "InternalError"), 0),
        (api_answer(503, "ServiceUnavailable"), 0),
        (api_answer(429, "TooManyRequests"), 0),
        (LostReply("cut"), 0),
    ],
)
def test_rejection_is_logged_once(error: KubeError, logged: int) -> None:
    error_log, state = ApiErrorLog(), KeyState()
    with capture_logs() as logs:
        for _ in range(3):
            error_log.record(KEY, state, outcome(error))
    assert [line["event"] for line in logs] == ["write rejected"] * logged
    assert all(error.status.message in line["reason"] for line in logs)  # type: ignore[attr-defined]
