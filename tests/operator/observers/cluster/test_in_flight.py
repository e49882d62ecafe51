"""The pods that the scheduler may be about to bind to the nodes of a gang."""

from __future__ import annotations

from grove.operator.caches.cluster_pods import ClusterPod
from grove.operator.observers.cluster.in_flight import PodsInFlight
from tests.operator.cluster_builders import listed, pod


def undecided() -> list[ClusterPod]:
    """Three pods of one template, and one of another."""
    return list(listed(pod("a"), pod("b"), pod("c"), pod("large", cpu="8")))


def test_pods_that_could_go_to_one_of_the_nodes() -> None:
    in_flight = PodsInFlight(undecided(), lambda each, host: host == "n1" or each.name == "large")
    assert in_flight.to(["n1", "n2"], ()) == {"uid-a", "uid-b", "uid-c", "uid-large"}
    assert in_flight.to(["n2"], ()) == {"uid-large"}
    assert in_flight.to([], ()) == frozenset()


def test_pods_of_the_gang_itself_are_left_out() -> None:
    in_flight = PodsInFlight(undecided(), lambda *_: True)
    assert in_flight.to(["n1"], {"uid-a", "uid-large"}) == {"uid-b", "uid-c"}
    assert in_flight.to(["n1"], ()) == {"uid-a", "uid-b", "uid-c", "uid-large"}


def test_each_template_is_compared_with_a_node_once() -> None:
    compared: list[tuple[str, str]] = []

    def could_go(each: ClusterPod, host: str) -> bool:
        compared.append((each.name, host))
        return False

    in_flight = PodsInFlight(undecided(), could_go)
    for _ in range(3):
        in_flight.to(["n1", "n2"], ())
    assert len(compared) == 4
