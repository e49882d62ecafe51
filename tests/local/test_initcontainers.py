"""What the stand-in for kubelets reports, when the API server does not hear it at once."""

from __future__ import annotations

import msgspec
import pytest
from tests.kube.replies import Answer, Replies, made, refused

from grove.kube.client import Client
from grove.kube.config import Config
from grove.kube.credentials import Presented
from grove.kube.errors import LostReply
from grove.kube.testing import virtual_time
from grove.kube.transport import Request
from grove.local.initcontainers import InitContainers
from grove.local.podview import HeldPod, ended

POD = msgspec.convert({"metadata": {"name": "second", "namespace": "n", "uid": "u"}}, HeldPod)


async def reports(*answers: Answer | None) -> int:
    """How often it is said that an init container has ended, if these are the answers; None: it is taken."""
    todo = iter(answers)

    def answer(request: Request) -> Answer:
        return next(todo) or made(request, "u")

    replies = Replies(answer)
    nodes = InitContainers(Config("https://127.0.0.1:1", Presented()))
    nodes._client = Client(replies)
    await nodes._report(POD, ended(POD, 0))
    return len(replies.sent)


@virtual_time
async def test_what_the_server_did_not_hear_is_said_again() -> None:
    """A pod whose init container has ended starts when the server knows, and nobody else would tell it."""
    assert await reports(LostReply("no answer"), refused(409, "Conflict"), None) == 3


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (422, "Invalid")])
def test_what_will_never_be_heard_is_said_once(code: int, reason: str) -> None:
    @virtual_time
    async def said() -> None:
        assert await reports(refused(code, reason)) == 1

    said()
