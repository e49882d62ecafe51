"""Pods that share a label besides the levels, such as the partition of a fabric."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.reasons.placement import refusal_reason
from grove.topology.placement.answers import Placed, Reason
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Node, Partition, Pod, PodShape, Problem, Unit
from grove.topology.placement.solve import solve
from grove.topology.placement.units import PodClass
from tests.topology.placement.builders import (
    LEVELS,
    a_node,
    a_shape,
    place,
    pods,
    racks,
    reasons,
    refuse,
    used,
)

KEY = "clique"
REQUIRED, PREFERRED = Partition(KEY), Partition(KEY, required=False)


def crossing(nodes: list[Node] | None = None) -> list[Node]:
    """Nodes of two partitions, c0 and c1, each with nodes of every rack."""
    listed = racks() if nodes is None else nodes
    return [
        replace(node, labels={**node.labels, KEY: f"c{number % 2}"}) for number, node in enumerate(listed)
    ]


def shape(*partitions: int) -> PodShape:
    return a_shape(fabric=True, partitions=partitions)


def a_gang(count: int, required: str = "zone", of: PodShape | None = None) -> Unit:
    return Unit("gang", required, "", (), pods("p", count, of or shape(0)))


def values(nodes: list[Node], found: dict[str, str], *names: str) -> set[str]:
    labels = {node.name: node.labels.get(KEY, "") for node in nodes}
    return {labels[node] for pod, node in found.items() if not names or pod.startswith(names)}


def test_pods_share_a_partition_that_crosses_racks() -> None:
    nodes = crossing()
    assert len(values(nodes, place(nodes, a_gang(2), partitions=(REQUIRED,)))) == 1


def test_required_partition_is_not_split() -> None:
    answer = refuse(crossing(), a_gang(3), partitions=(REQUIRED,))
    assert answer.fits_if_empty is False
    message = refusal_reason(answer, LEVELS).message
    assert f"{KEY} c0: gang: needs 3 pods, 2 would fit if it were empty" in message.replace("zone a, ", "")


def test_preferred_partition_is_given_up_if_it_is_too_small() -> None:
    assert len(place(crossing(), a_gang(3), partitions=(PREFERRED,))) == 3


def test_preferred_partition_is_kept_if_there_is_room() -> None:
    nodes = crossing()
    busy = {nodes[0].name: used(8)}
    assert values(nodes, place(nodes, a_gang(2), busy, partitions=(PREFERRED,))) == {"c1"}


def test_label_that_no_node_has_is_named() -> None:
    answer = refuse(racks(), a_gang(2), partitions=(REQUIRED,))
    assert reasons(answer) == {Reason.NO_DOMAIN}
    assert "do not require one partition" in refusal_reason(answer, LEVELS).remedy
    assert len(place(racks(), a_gang(2), partitions=(PREFERRED,))) == 2


def test_placed_pods_decide_on_the_value() -> None:
    nodes = crossing()
    for value in ("c0", "c1"):
        found = place(nodes, a_gang(1), partitions=(Partition(KEY, value=value),))
        assert values(nodes, found) == {value}


def test_full_partition_of_placed_pods_is_waited_for() -> None:
    nodes = crossing()
    busy = {node.name: used(8) for node in nodes if node.labels[KEY] == "c0"}
    answer = refuse(nodes, a_gang(1), busy, partitions=(Partition(KEY, value="c0"),))
    assert answer.fits_if_empty
    assert f"{KEY} c0, where its fabric domain has pods" in refusal_reason(answer, LEVELS).message


def test_full_preferred_partition_is_left_together() -> None:
    """Although that breaks up one more rack."""
    places = (("a/1/n1", "c1"), ("a/1/n2", "c2"), ("a/2/n3", "c1"), ("a/3/n4", "c0"))
    nodes = [a_node(name, labels={KEY: value}) for name, value in places]
    gone = Partition(KEY, required=False, value="c0")
    found = place(nodes, a_gang(2), {"n4": used(8)}, partitions=(gone,))
    assert set(found.values()) == {"n1", "n3"}


def test_two_domains_get_partitions_of_their_own() -> None:
    nodes = crossing()
    two = Unit("gang", "", "", (), (*pods("a", 2, shape(0)), *pods("b", 2, shape(1))))
    found = place(nodes, two, partitions=(REQUIRED, REQUIRED))
    assert {len(values(nodes, found, name)) for name in "ab"} == {1}
    assert values(nodes, found) == {"c0", "c1"}


def test_first_of_two_preferred_partitions_goes_first() -> None:
    """There is room for one of them only beside the single pod that must be in c0."""
    nodes = crossing()
    busy = {nodes[1].name: used(8)}
    two = Unit("gang", "", "", (), (*pods("a", 1, shape(0)), *pods("b", 2, shape(1))))
    fixed = Partition(KEY, required=False, value="c0")
    found = place(nodes, two, busy, partitions=(fixed, PREFERRED))
    assert values(nodes, found, "a") == {"c0"}
    found = place(nodes, two, busy, partitions=(replace(fixed, value="c1"), PREFERRED))
    assert (values(nodes, found, "a"), values(nodes, found, "b")) == ({"c1"}, {"c0"})


def test_pods_outside_of_the_domain_go_anywhere() -> None:
    nodes = crossing()
    mixed = Unit("gang", "", "", (), (*pods("a", 2, shape(0)), *pods("b", 2, a_shape())))
    found = place(nodes, mixed, partitions=(REQUIRED,))
    assert len(values(nodes, found, "a")) == 1
    assert len(found) == 4


def test_selector_of_the_user_is_not_overridden() -> None:
    nodes = crossing()
    chosen = replace(shape(0), node_selector={KEY: "c1"})
    assert values(nodes, place(nodes, a_gang(2, of=chosen), partitions=(REQUIRED,))) == {"c1"}
    answer = refuse(nodes, a_gang(2, of=chosen), partitions=(Partition(KEY, value="c0"),))
    assert Reason.FRAGMENTED not in reasons(answer), "no node has both values"


def test_extra_pods_leave_a_preferred_partition_only() -> None:
    nodes = crossing()
    extras = tuple(Pod(f"x{i}", shape(0), extra=True) for i in range(2))
    gang = Unit("gang", "", "", (), (*pods("p", 1, shape(0)), *extras))
    assert len(place(nodes, gang, partitions=(PREFERRED,))) == 3
    found = place(nodes, gang, partitions=(REQUIRED,))
    assert len(found) == 2
    assert len(values(nodes, found)) == 1


def test_partition_with_room_for_further_gangs_is_chosen() -> None:
    """The smaller one would be chosen otherwise."""
    nodes = [a_node(f"a/1/c0-{i}", labels={KEY: "c0"}) for i in range(2)]
    nodes += [a_node(f"a/2/c1-{i}", labels={KEY: "c1"}) for i in range(3)]

    def with_further(count: int) -> tuple[tuple[str, ...], bool]:
        later = (Unit("later", parts=(Unit("c", pods=pods("l", count, shape(0))),)),) if count else ()
        problem = Problem(a_gang(1), further=later, partitions=(PREFERRED,))
        answer = solve(ClusterIndex(LEVELS, nodes), problem)
        assert isinstance(answer, Placed)
        return answer.partitions, answer.room_for_further

    assert with_further(0) == (("c0",), True)
    assert with_further(2) == (("c1",), True)
    assert with_further(3) == (("c0",), False)


def several(count: int, pods_each: int) -> Unit:
    """A gang with so many fabric domains."""
    parts = (Unit(f"u{n}", pods=pods(f"p{n}-", pods_each, shape(n))) for n in range(count))
    return Unit("gang", parts=tuple(parts))


def partitioned(count: int, nodes: int) -> list[Node]:
    return [
        a_node(f"a/{rack}/n{rack}-{i}", labels={KEY: f"c{rack}"})
        for rack in range(count)
        for i in range(nodes)
    ]


def packed(nodes: list[Node], found: dict[str, str], count: int) -> int:
    """How many domains are in one partition."""
    return sum(len(values(nodes, found, f"p{n}-")) == 1 for n in range(count))


def test_twelve_preferred_partitions_keep_no_gang_waiting() -> None:
    """Eleven partitions have room for one domain each: the last domain is split."""
    nodes = partitioned(11, 4)
    found = place(nodes, several(12, 3), partitions=(PREFERRED,) * 12)
    assert packed(nodes, found, 12) == 11


def test_twelve_required_partitions_are_found() -> None:
    nodes = partitioned(12, 4)
    found = place(nodes, several(12, 3), partitions=(REQUIRED,) * 12)
    assert packed(nodes, found, 12) == 12


def test_twelve_required_partitions_that_do_not_fit_are_refused() -> None:
    """There are enough nodes in total, and more choices than can be tried."""
    for size, nodes in ((3, 4), (2, 2)):
        answer = refuse(partitioned(11, nodes), several(12, size), partitions=(REQUIRED,) * 12)
        assert answer.fits_if_empty is False
    mixed = replace(several(12, 3), parts=(*several(11, 3).parts, *several(12, 4).parts[11:]))
    assert not refuse(partitioned(11, 4), mixed, partitions=(REQUIRED,) * 12).fits_if_empty


def test_domains_in_different_units_are_not_interchangeable() -> None:
    """The second domain must be in the rack of the partition that sorts first."""
    nodes = partitioned(2, 2)
    one, two = several(2, 2).parts
    bound = Pod("b", a_shape(0), node="n0-0")
    gang = Unit("gang", parts=(one, Unit("beside", "rack", parts=(two, Unit("b", pods=(bound,))))))
    found = place(nodes, gang, partitions=(REQUIRED,) * 2)
    assert (values(nodes, found, "p0-"), values(nodes, found, "p1-")) == ({"c1"}, {"c0"})


def test_more_domains_than_supported_are_not_packed() -> None:
    """Nested calls for each of them would be too deep."""
    count = 1100
    nodes = partitioned(100, 12)
    gang = several(count, 1)
    some = timing.PLACEMENT_PACKED_DOMAINS
    answer = solve(ClusterIndex(LEVELS, nodes), Problem(gang, partitions=(PREFERRED,) * count))
    assert isinstance(answer, Placed)
    assert len(answer.nodes) == count
    assert sum(map(bool, answer.partitions)) <= some
    refused = refuse(nodes, gang, partitions=(REQUIRED,) * count)
    assert reasons(refused) == {Reason.TOO_MANY_PARTITIONS}
    reason = refusal_reason(refused, LEVELS)
    assert f"{count} fabric domains require one partition each, at most {some}" in reason.message
    assert "do not require one partition" in reason.remedy


def test_required_domains_are_packed_before_preferred_ones() -> None:
    count = timing.PLACEMENT_PACKED_DOMAINS
    nodes = partitioned(count + 1, 2)
    partitions = (PREFERRED, *(REQUIRED,) * count)
    found = place(nodes, several(count + 1, 2), partitions=partitions)
    assert all(len(values(nodes, found, f"p{n}-")) == 1 for n in range(1, count + 1))


def test_values_of_many_domains_are_searched_within_the_limit() -> None:
    """What is read of nodes does not grow with equal domains, and reading the gang again is work, too."""
    nodes = partitioned(50, 10)
    evaluated = 0
    count_slots = PodClass.eligible

    def counted(self: PodClass, i: int) -> bool:
        nonlocal evaluated
        evaluated += 1
        return count_slots(self, i)

    index, gang = ClusterIndex(LEVELS, nodes), several(30, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PodClass, "eligible", counted)
        answer = solve(index, Problem(gang, partitions=(REQUIRED,) * 30), improvement_limit=0)
    assert isinstance(answer, Placed)
    assert evaluated < 30 * len(nodes), "not each node for each two of them"
