"""Gangs with fabric domains that go to one partition of the fabric: decisions, and several gangs of one
domain."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from grove.plan.placement.assignment import Assignment, Decision, NodeLabels, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.decision import Circumstances, decide
from grove.plan.placement.demand import Demand, FabricDomain, PackedDomain, WantedPod
from grove.plan.placement.domain_members import NodesByDomain
from grove.plan.placement.pins import with_shapes
from grove.plan.placement.rounds.hold import find_hold
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, RoundResult
from tests.plan.placement.gangs import RACK, asks, changes, demand, gated, racks, used

KEY = "nvidia.com/gpu.clique"
DOMAIN = FabricDomain("ns", "team")
NOW = 1000.0


def partitions(count: int, hosts: int) -> dict[str, ObservedNode]:
    """Partitions p0, p1, ... with nodes r0-h0, r0-h1, ..."""
    found = {}
    for name, observed in racks(count, hosts).items():
        assert observed.node is not None
        labels = {**observed.node.labels, KEY: f"p{name[1]}"}
        found[name] = replace(observed, node=replace(observed.node, labels=labels))
    return found


def packed(wanted: Demand, *, required: bool = True, name: str = "team") -> Demand:
    """The gang in one fabric domain."""
    clique = next(iter(wanted.pods)).slot.clique
    unit = with_shapes(wanted.unit, {clique: lambda shape: replace(shape, fabric=True, partitions=(0,))})
    domain = PackedDomain(FabricDomain("ns", name), KEY, required)
    return replace(wanted, unit=unit, domains=(domain,), constrained=wanted.constrained or required)


def decided(
    nodes: Mapping[str, ObservedNode], wanted: Demand, members: NodesByDomain | None = None
) -> Decision:
    capacity = ClusterCapacity()
    capacity.observe(nodes)
    return decide(capacity, wanted, Circumstances(members=members or {})).decision


def partition_of(decision: Decision) -> set[str]:
    return {f"p{node[1]}" for node in decision.nodes.values()}


def test_required_partition_is_a_pin() -> None:
    found = decided(partitions(2, 4), packed(demand("a", 2)))
    assert isinstance(found, Assignment)
    assert found.node_labels("a") == NodeLabels({KEY: "p0"})
    assert not found.nominated, "there is room for it twice"


def test_pin_of_a_partition_comes_with_those_of_levels() -> None:
    found = decided(partitions(2, 4), packed(demand("a", 2, required=RACK)))
    assert isinstance(found, Assignment)
    assert found.pins["a"] == {"example.com/block": "b0", RACK: "r0", KEY: "p0"}


def test_preferred_partition_with_slack_is_a_pin() -> None:
    """The scheduler weighs a preference against others, such as spreading over zones. No call is needed to
    nominate and release the pods."""
    for others in (1, 2):
        found = decided(partitions(others, 4), packed(demand("a", 2), required=False))
        assert isinstance(found, Assignment)
        assert found.node_labels("a") == NodeLabels({KEY: "p0"}, {KEY: "p0"})
        assert not found.nominated


def test_preferred_partition_without_slack_is_nominated() -> None:
    """Pods without a pin could still go elsewhere if others take their nodes."""
    found = decided(partitions(2, 3), packed(demand("a", 2), required=False))
    assert isinstance(found, Assignment)
    assert found.node_labels("a") == NodeLabels({}, {KEY: "p0"})
    assert found.nominated


def test_replaced_pod_leaves_a_full_preferred_partition() -> None:
    """Although the gang was pinned when it started: the pin is not one of the gang."""
    full = {name: used(each, 8) if name[1] == "0" else each for name, each in partitions(2, 4).items()}
    bound = {0: WantedPod(PodSlot("a", 0), "a-0", "r0-h0", False)}
    found = decided(full, packed(demand("a", 2, existing=bound), required=False))
    assert isinstance(found, Assignment)
    assert partition_of(found) == {"p1"}
    assert found.node_labels("a").required == {KEY: "p1"}, "the pin of the new pod"


def test_replaced_pod_of_a_gang_that_ran_prefers_the_partition() -> None:
    """Others may fill the partition before the pod is bound, and nothing replaces the pod."""
    bound = {0: WantedPod(PodSlot("a", 0), "a-0", "r1-h0", False)}
    wanted = replace(demand("a", 2, existing=bound), was_scheduled=True)
    found = decided(partitions(2, 4), packed(wanted, required=False))
    assert isinstance(found, Assignment)
    assert found.node_labels("a") == NodeLabels({}, {KEY: "p1"})
    found = decided(partitions(2, 4), packed(wanted))
    assert isinstance(found, Assignment)
    assert found.node_labels("a") == NodeLabels({KEY: "p1"}), "a required one is never left"


def two_domains(*, required: bool) -> Demand:
    """A gang with a clique in each of two domains."""
    first, second = packed(demand("a", 2), required=required), packed(demand("b", 2), required=required)
    other = with_shapes(second.unit, {"b": lambda shape: replace(shape, partitions=(1,))})
    domains = (*first.domains, replace(first.domains[0], domain=FabricDomain("ns", "other")))
    unit = replace(first.unit, parts=(*first.unit.parts, *other.parts))
    return replace(first, unit=unit, pods=(*first.pods, *second.pods), domains=domains)


def test_two_domains_with_slack_are_not_nominated() -> None:
    """Each has slack in its partition, and no node has the labels of both."""
    members = {DOMAIN: frozenset({"r0-h0"}), FabricDomain("ns", "other"): frozenset({"r1-h0"})}
    for required in (True, False):
        for hosts, nominated in ((4, False), (3, True)):
            found = decided(partitions(2, hosts), two_domains(required=required), members)
            assert isinstance(found, Assignment)
            assert partition_of(found) == {"p0", "p1"}
            assert found.nominated is nominated
            pins = {clique: dict(found.node_labels(clique).required) for clique in "ab"}
            is_pinned = required or not nominated
            assert pins == {clique: {KEY: p} if is_pinned else {} for clique, p in (("a", "p0"), ("b", "p1"))}


def test_partition_without_slack_is_nominated() -> None:
    found = decided(partitions(2, 3), packed(demand("a", 2)))
    assert isinstance(found, Assignment)
    assert found.nominated


def test_required_partition_is_never_split() -> None:
    found = decided(partitions(2, 2), packed(demand("a", 3)))
    assert isinstance(found, Waiting)
    assert "no place even if the cluster were empty" in found.message
    split = decided(partitions(2, 2), packed(demand("a", 3), required=False))
    assert isinstance(split, Assignment)
    assert len(split.nodes) == 3


def test_placed_pods_of_the_domain_decide_on_the_partition() -> None:
    members = {DOMAIN: frozenset({"r1-h0"})}
    assert partition_of(decided(partitions(2, 2), packed(demand("a", 1)), members)) == {"p1"}
    full = {name: used(each, 8) if name[1] == "1" else each for name, each in partitions(2, 2).items()}
    waits = decided(full, packed(demand("a", 1)), members)
    assert isinstance(waits, Waiting)
    assert f"{KEY} p1, where its fabric domain has pods" in waits.message
    assert partition_of(decided(full, packed(demand("a", 1), required=False), members)) == {"p0"}


def test_bound_pods_of_the_gang_decide_on_the_partition() -> None:
    bound = {0: WantedPod(PodSlot("a", 0), "a-0", "r1-h0", False)}
    assert partition_of(decided(partitions(2, 4), packed(demand("a", 2, existing=bound)))) == {"p1"}


def test_pin_of_a_released_pod_is_kept() -> None:
    released = {0: WantedPod(PodSlot("a", 0), "a-0", "", gated=False)}
    wanted = packed(demand("a", 2, existing=released, pinned={"a": {KEY: "p1"}}))
    assert partition_of(decided(partitions(2, 4), wanted)) == {"p1"}
    full = {name: used(each, 8) if name[1] == "1" else each for name, each in partitions(2, 4).items()}
    assert isinstance(decided(full, wanted), Waiting), "the pin of that pod cannot be changed"
    waiting = {0: WantedPod(PodSlot("a", 0), "a-0", "", gated=True)}
    wanted = packed(demand("a", 2, existing=waiting, pinned={"a": {KEY: "p1"}}))
    assert partition_of(decided(full, wanted)) == {"p0"}, "no pod of it was released"


def test_successor_beside_its_predecessor_splits_no_domain() -> None:
    """A pod is replaced where it is; another one finds no room in that partition."""
    nodes = {name: used(each, 8) if name[1] == "1" else each for name, each in partitions(2, 3).items()}
    existing = {
        0: WantedPod(PodSlot("a", 0), "a-0", "r1-h0", False),
        1: WantedPod(PodSlot("a", 1), predecessor="r1-h1", predecessor_name="a-1-old"),
    }
    replaced = decided(nodes, packed(demand("a", 2, existing=existing)))
    assert replaced.nodes == {PodSlot("a", 1): "r1-h1"}
    assert isinstance(decided(nodes, packed(demand("a", 3, existing=existing))), Waiting)


def found_in(result: RoundResult, gang: str) -> set[str]:
    decision = next(state.decision for name, state in result.changed.items() if name.name == gang)
    assert decision is not None
    return partition_of(decision)


def test_gangs_of_one_round_share_the_partition_of_their_domain() -> None:
    """The second has better fitting nodes elsewhere."""
    nodes = {name: used(each, 8) if name == "r1-h0" else each for name, each in partitions(2, 3).items()}
    first, second = packed(demand("a", 3, created="1")), packed(demand("b", 1, gpus=4, created="2"))
    result = run_round(ClusterCapacity(), changes(nodes, asks(first), asks(second)), NOW)
    assert found_in(result, "a-gang") == {"p0"}
    decision = next(s.decision for name, s in result.changed.items() if name.name == "b-gang")
    assert isinstance(decision, Waiting), "no node of the partition is left"
    other = packed(demand("b", 1, gpus=4, created="2"), name="other")
    result = run_round(ClusterCapacity(), changes(nodes, asks(first), asks(other)), NOW)
    assert found_in(result, "b-gang") == {"p1"}


def test_gang_of_an_earlier_round_decides_on_the_partition() -> None:
    nodes, capacity = partitions(2, 3), ClusterCapacity()
    first = packed(demand("a", 1, created="1"))
    assigned = {first.gang: {DOMAIN: frozenset({"r1-h2"})}}
    second = packed(demand("b", 1, created="2"))
    result = run_round(capacity, changes(nodes, asks(second), assigned_in_domains=assigned), NOW)
    assert found_in(result, "b-gang") == {"p1"}
    own = {second.gang: {DOMAIN: frozenset({"r1-h2"})}}
    result = run_round(ClusterCapacity(), changes(nodes, asks(second), assigned_in_domains=own), NOW)
    assert found_in(result, "b-gang") == {"p0"}, "it may be decided on anew"


def test_nodes_are_held_in_one_partition() -> None:
    nodes = {name: used(each, 8) for name, each in partitions(2, 3).items()}
    capacity = ClusterCapacity()
    capacity.observe(nodes)
    wanted = packed(demand("a", 3))
    found = find_hold(capacity, wanted, {}, (), NOW)
    assert found is not None
    assert len({node[1] for node in found.nodes.values()}) == 1
    found = find_hold(capacity, wanted, {}, (), NOW, {DOMAIN: frozenset({"r1-h0"})})
    assert found is not None
    assert {node[1] for node in found.nodes.values()} == {"1"}


def test_gang_with_required_partition_is_never_released_in_part() -> None:
    nodes = {name: used(each, 8) for name, each in partitions(2, 2).items()}
    for required in (True, False):
        state = GangState(gated(packed(demand("a", 2), required=required)), since=NOW - 100)
        gang = replace(asks(state.demand), state=state)
        result = run_round(ClusterCapacity(), changes(nodes, gang, visible_after=30.0), NOW)
        (after,) = result.changed.values()
        assert isinstance(after.decision, Waiting if required else Assignment)


def test_successor_follows_a_partition_that_was_renamed() -> None:
    nodes = partitions(2, 4)
    nodes["r0-h0"] = used(nodes["r0-h0"], 8)
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    wanted = packed(demand("a", 2, existing={0: bound}, pinned={"a": {KEY: "former"}}))
    found = decided(nodes, wanted)
    assert isinstance(found, Assignment)
    assert partition_of(found) == {"p0"}
    assert found.pins["a"] == {KEY: "p0"}
