"""What is not current is not shown as if it were."""

from __future__ import annotations

import pytest

from grove.dashboard.model import Connection
from grove.dashboard.rights import Rights
from grove.dashboard.state.changes import Facts
from grove.dashboard.state.live import LiveBoard, _operator
from grove.dashboard.state.observed import Observed
from grove.kube.client.client import Client
from grove.views.operator_view import OperatorView
from tests.dashboard.state import histories as made
from tests.dashboard.state.histories import MemoryCluster
from tests.kube.executor.stub_transport import StubTransport, refused

TENANT = Rights(frozenset({"open"}), nodes=False)


def fail(*_arguments: object) -> None:
    raise ZeroDivisionError("bug")


def a_live_board() -> LiveBoard:
    """A board of a server that answers nothing, without its watches."""
    client = Client(StubTransport(lambda _: refused(403, "Forbidden"), lambda _: 0.0))
    return LiveBoard(client, (), True, "lease", "")


async def test_refresh_that_fails_is_done_again(monkeypatch):
    cluster = MemoryCluster()
    cluster.put("node", made.a_node("n0"))
    cluster.put("set", made.a_set("open", "a"))
    with monkeypatch.context() as patched:
        patched.setattr(cluster.events, "take_new", fail)
        with pytest.raises(ZeroDivisionError):
            cluster.refresh()
    cluster.refresh()
    found = cluster.board.picture(Rights())
    assert (list(found.nodes), list(found.sets)) == (["n0"], ["open/a"])


async def test_refresh_that_ends_between_two_steps_is_done_again():
    cluster = MemoryCluster()
    for number in range(500):
        cluster.put("node", made.a_node(f"n{number}"))
    steps = iter(cluster.refresher.steps(Facts()))
    next(steps)
    steps.close()
    cluster.refresh()
    assert len(cluster.board.picture(Rights()).nodes) == 500


async def test_summary_that_fails_is_named_to_those_who_may_see_it(monkeypatch):
    cluster = MemoryCluster()
    for name in ("open", "hidden"):
        cluster.put("set", made.a_set(name, "a"))
    cluster.put("node", made.a_node("n0"))
    with monkeypatch.context() as patched:
        patched.setattr(Observed, "set", fail)
        patched.setattr(Observed, "node", fail)
        cluster.refresh()
    because = "shown as they were, because of an error"
    assert cluster.board.picture(Rights()).unread == (
        f"nodes: {because}: n0",
        f"sets: {because}: hidden/a, open/a",
    )
    assert cluster.board.picture(TENANT).unread == (f"sets: {because}: open/a",)
    cluster.put("node", made.a_node("n0", unschedulable=True))
    cluster.refresh()
    assert cluster.board.picture(Rights()).unread == (f"sets: {because}: hidden/a, open/a",)


async def test_pages_say_that_the_refresh_fails_until_it_succeeds(monkeypatch):
    board = a_live_board()
    with monkeypatch.context() as patched:
        patched.setattr(board._refresher, "steps", fail)
        await board._refresh()
        first = board.heartbeat(Rights()).connection
        assert not first.connected
        assert "bug" in first.problem
        await board._refresh()
        assert board.heartbeat(Rights()).connection.since == first.since
        assert board.picture(Rights()).connection == first
    await board._refresh()
    assert board.heartbeat(Rights()).connection == board.picture(Rights()).connection == Connection()


async def test_lists_that_are_not_complete_are_named():
    board = a_live_board()
    await board._refresh()
    assert not board.is_settled
    found = board.picture(Rights()).unread
    assert {"nodes: still being read", "podcliquesets.grove.io: still being read"} <= set(found)


async def test_operator_is_not_known_without_leases():
    alive = OperatorView(alive=True, lease="lease", holder="operator-1")
    assert _operator(alive, None, 0.0) is None
    cluster = MemoryCluster()
    cluster.facts = Facts(operator=alive)
    cluster.refresh()
    assert cluster.board.heartbeat(Rights()).operator is None


async def test_leases_that_may_not_be_listed_any_more_are_not_known():
    board = a_live_board()
    leases, watches = board._observed.lease_cache, board._watches
    leases.replace([], "1")
    assert watches.leases() is not None
    (reflector,) = (each for store, each in watches._reflectors if store is leases)
    reflector._problem, reflector._forbidden = "403", True
    assert watches.leases() is None
