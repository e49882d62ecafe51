"""Ends of leadership that a real server cannot cause; the others are in tests/cluster."""

from __future__ import annotations

import asyncio

import msgspec

from grove.kube.client.client import Client
from grove.kube.client.transport import Request, Response
from grove.kube.leader.elector import Elector
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.executor.stub_transport import Answer, StubTransport

LEASE = {"metadata": {"name": "election", "resourceVersion": "1"}, "spec": {"holderIdentity": "me"}}


def answer(request: Request) -> Answer:
    if request.verb == "get":
        return Response(404, {}, b'{"code": 404, "reason": "NotFound"}')
    if request.verb == "create":
        return Response(201, {}, msgspec.json.encode(LEASE))
    return RuntimeError("a bug")


@virtual_time
async def test_unexpected_renewal_error_ends_leadership() -> None:
    clock = asyncio.get_running_loop().time
    elector = Elector(Client(StubTransport(answer)), "ns", "election", "me", clock=clock)
    async with elector.lead() as leadership:
        assert leadership.held
        assert "renewing failed" in await asyncio.wait_for(leadership.ended(), 60)
        assert clock() < elector.timing.renew_deadline
