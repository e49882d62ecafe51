"""How many streams may be open."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from grove.dashboard.access.errors import TooMany
from grove.dashboard.server.stream.open_streams import OpenStreams


def test_streams_are_bounded_for_a_user_and_in_total() -> None:
    streams = OpenStreams(total=3, per_user=2)
    with ExitStack() as first:
        for _ in range(2):
            first.enter_context(streams.opened("jane"))
        with pytest.raises(TooMany, match="of this user"), streams.opened("jane"):
            pass
        with streams.opened("john"):
            assert len(streams) == 3
            with pytest.raises(TooMany, match="too many open pages: "), streams.opened("jack"):
                pass
        with streams.opened("jack"):
            pass
    assert len(streams) == 0
    assert not streams._open, "users without streams are forgotten"


def test_service_accounts_of_one_namespace_leave_room_for_others() -> None:
    streams = OpenStreams(total=4, per_user=2, per_tenant=2)
    with ExitStack() as opened:
        for number in range(2):
            opened.enter_context(streams.opened(f"system:serviceaccount:a:robot-{number}"))
        with (
            pytest.raises(TooMany, match="of the ServiceAccounts of this namespace"),
            streams.opened("system:serviceaccount:a:robot-2"),
        ):
            pass
        opened.enter_context(streams.opened("system:serviceaccount:b:robot-0"))
        opened.enter_context(streams.opened("jane"))
    assert not streams._tenants
