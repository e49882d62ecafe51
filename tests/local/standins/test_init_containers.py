"""What the stand-in for kubelets reports, when the API server does not hear it at once."""

from __future__ import annotations

import msgspec
import pytest

from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.client.client import Client
from grove.kube.client.transport import Request
from grove.kube.errors import LostReply
from grove.kube.testing.virtual_time import virtual_time
from grove.local.standins.init_containers import InitContainers
from grove.local.standins.pod_status import InitContainerPod, ended
from tests.kube.executor.stub_transport import Answer, StubTransport, created_reply, refused

POD = msgspec.convert({"metadata": {"name": "second", "namespace": "n", "uid": "u"}}, InitContainerPod)


async def reports(*answers: Answer | None) -> int:
    """How often it is said that an init container has ended, if these are the answers; None: it is taken."""
    todo = iter(answers)

    def answer(request: Request) -> Answer:
        return next(todo) or created_reply(request, "u")

    replies = StubTransport(answer)
    nodes = InitContainers(Config("https://127.0.0.1:1", StaticCredentials()))
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
