"""Which ports a cluster gets when it starts, and starts again."""

from __future__ import annotations

import socket
import threading

import msgspec
import pytest

from grove.local.cluster.ports import choose, is_free
from grove.local.errors import LocalError
from grove.local.state_dir import Ports


def by_name(ports: Ports) -> dict[str, int]:
    return {name: getattr(ports, name) for name in Ports.__struct_fields__}


def test_new_cluster_has_distinct_free_ports() -> None:
    found = by_name(choose(0))
    assert len({*found.values()}) == len(found)
    assert all(map(is_free, found.values()))


def test_free_ports_are_kept() -> None:
    before = choose(0)
    assert choose(0, before) == before


def test_port_of_a_process_that_is_ending_is_kept() -> None:
    before = choose(0)
    taken = socket.create_server(("127.0.0.1", before.apiserver))
    ending = threading.Timer(0.3, taken.close)
    ending.start()
    assert choose(0, before) == before
    ending.join()


@pytest.mark.parametrize("name", ["kwok", "apiserver"])
def test_only_a_taken_port_is_chosen_again(name: str) -> None:
    before = choose(0)
    with socket.create_server(("127.0.0.1", getattr(before, name))):
        after = choose(0, before)
    changed = {each for each, port in by_name(after).items() if port != getattr(before, each)}
    assert changed == {name}
    assert len({*by_name(after).values()}) == len(by_name(after))


def test_chosen_port_replaces_the_previous_one() -> None:
    before, port = choose(0), choose(0).apiserver
    assert choose(port, before) == msgspec.structs.replace(before, apiserver=port)


def test_chosen_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalError, match=f"port {port} is taken by another program: choose another"):
            choose(port)
