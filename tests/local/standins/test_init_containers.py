"""Status reports of the stand-in for kubelets when the API server rejects or loses them."""

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
    """How often the exit of an init container is reported with these replies; None: accepted."""
    todo = iter(answers)

    def answer(request: Request) -> Answer:
        return next(todo) or created_reply(request, "u")

    replies = StubTransport(answer)
    nodes = InitContainers(Config("https://127.0.0.1:1", StaticCredentials()))
    nodes._client = Client(replies)
    await nodes._report(POD, ended(POD, 0))
    return len(replies.sent)


@virtual_time
async def test_failed_report_is_retried() -> None:
    """A pod starts only after the exit of its init container is stored, and nothing else reports it."""
    assert await reports(LostReply("no answer"), refused(409, "Conflict"), None) == 3


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (422, "Invalid")])
def test_rejected_report_is_not_retried(code: int, reason: str) -> None:
    @virtual_time
    async def check() -> None:
        assert await reports(refused(code, reason)) == 1

    check()
