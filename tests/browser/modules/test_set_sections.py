"""Parts of the page of a set, from one answer of the server."""

from __future__ import annotations

from typing import Any

import pytest

TEXT = "(sections, status) => sections.rollout(status).querySelector('.line').textContent"
WAITS = [{"code": "InsufficientResources", "message": "m", "remedy": "r"}]
GANGS = [{"name": "a-0", "ready": 1, "pods": 4}, {"name": "a-1", "ready": 2, "pods": 2}]


def status(state: str, waits: list[dict[str, str]], gangs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "rollout": {"state": state, "replicas": 2, "updatedReplicas": 0},
        "waitsFor": waits,
        "gangs": gangs,
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (status("Progressing", WAITS, GANGS), "Progressing, 3 pods wait: InsufficientResources"),
        (status("Progressing", WAITS, [{"name": "a-0", "ready": 0, "pods": 1}]),
         "Progressing, 1 pod waits: InsufficientResources"),
        (status("Progressing", [], GANGS), "Progressing"),
        (status("Paused", WAITS, GANGS), "Paused"),
        (status("Complete", WAITS, GANGS), "Complete"),
    ],
)  # fmt: skip
async def test_rollout_says_why_it_does_not_go_on(call, found, words):
    assert (await call("pages/parts/set_sections.js", TEXT, found)).strip() == words
