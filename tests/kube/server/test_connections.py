"""Which connection is closed for a new one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grove.kube.server.connections import ConnectionLimits, Connections


class Fake:
    """A connection without a socket."""

    def __init__(self, peer: str) -> None:
        self.peer, self.evicted = peer, False

    def evict(self) -> None:
        self.evicted = True


def test_peer_above_its_limit_loses_its_own_oldest_connection() -> None:
    connections = Connections(ConnectionLimits(total=10, per_peer=2))
    others, own = Fake("a"), [Fake("b") for _ in range(3)]
    assert all(connections.add(each) for each in (others, *own))
    assert [each.evicted for each in (others, *own)] == [False, True, False, False]


def test_full_server_closes_connection_of_largest_peer() -> None:
    connections = Connections(ConnectionLimits(total=4, per_peer=4))
    many, few, new = [Fake("many") for _ in range(3)], Fake("few"), Fake("new")
    for each in (few, *many):
        connections.add(each)
    assert connections.add(new)
    assert [each.evicted for each in (few, *many)] == [False, True, False, False]


def test_connection_in_work_is_never_evicted() -> None:
    connections = Connections(ConnectionLimits(total=2, per_peer=2))
    own = [Fake("a"), Fake("a")]
    for each in own:
        connections.add(each)
        connections.begin_answer(each)
    assert not connections.add(Fake("a"))
    assert not connections.add(Fake("b"))
    connections.end_answer(own[1])
    assert connections.add(Fake("a"))
    assert [each.evicted for each in own] == [False, True]


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "answer", "end", "close"])))


@given(STEPS)
def test_limits_hold_and_new_connections_find_room(steps: list[tuple[str, str]]) -> None:
    limits = ConnectionLimits(total=5, per_peer=3)
    connections, opened, busy = Connections(limits), [], set()
    for peer, step in steps:
        own = [each for each in opened if each.peer == peer and not each.evicted]
        if step == "add":
            new = Fake(peer)
            if connections.add(new):
                opened.append(new)
            else:
                assert busy
        elif own and step == "answer":
            busy.add(own[0])
            connections.begin_answer(own[0])
        elif own and step == "end":
            busy.discard(own[0])
            connections.end_answer(own[0])
        elif own:
            busy.discard(own[0])
            connections.remove(own[0])
            opened.remove(own[0])
        alive = [each for each in opened if not each.evicted]
        assert len(alive) == len(connections) <= limits.total
        assert max([sum(each.peer == name for each in alive) for name in "abc"]) <= limits.per_peer
        assert not any(each.evicted for each in busy)
