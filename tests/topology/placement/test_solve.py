"""What the solver takes into account, one thing at a time."""

from __future__ import annotations

from msgspec.structs import replace

from grove.topology.placement.answers import GaveUp, Placed, Reason
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import (
    FABRIC_POD,
    Node,
    NodeUse,
    Pod,
    PodShape,
    Problem,
    Unit,
)
from grove.topology.placement.solve import solve
from tests.topology.placement.builders import (
    GPU,
    LEVELS,
    a_gang,
    a_node,
    a_shape,
    place,
    pods,
    racks,
    reasons,
    refuse,
    used,
)


def rack_of(nodes: dict[str, str]) -> set[str]:
    return {node.rpartition("-")[0] for node in nodes.values()}


def test_required_level_keeps_a_gang_in_one_domain() -> None:
    assert rack_of(place(racks(), a_gang(2, "rack"), {"a-1-1": used(1)})) == {"a-2"}


def test_gang_without_constraint_uses_any_nodes() -> None:
    assert len(set(place(racks(), a_gang(4)).values())) == 4


def test_preferred_level_is_given_up_in_part_only() -> None:
    answer = solve(ClusterIndex(LEVELS, racks("a", 2, 3)), Problem(a_gang(4, "zone", "rack")))
    assert isinstance(answer, Placed)
    assert answer.score == 0.75
    assert not answer.preferred_met


def test_split_gang_goes_to_the_largest_preferred_domain() -> None:
    nodes = [*racks("a", 1, 3), *(a_node(f"a/2/a-2-{i}") for i in range(2))]
    answer = solve(ClusterIndex(LEVELS, nodes), Problem(a_gang(4, "zone", "rack")), improvement_limit=0)
    assert isinstance(answer, Placed)
    assert answer.score == 0.75


def test_whole_domain_is_kept() -> None:
    assert rack_of(place(racks(), a_gang(1, "rack"), {"a-2-1": used(1)})) == {"a-2"}


def test_group_replicas_choose_racks_of_their_own() -> None:
    parts = tuple(Unit(f"g{i}", "rack", "", (), pods(f"g{i}-", 2)) for i in range(2))
    answer = solve(ClusterIndex(LEVELS, racks("ab")), Problem(Unit("gang", "zone", "", parts)))
    assert isinstance(answer, Placed)
    assert answer.domains == {"gang": ("a",), "g0": ("a", "1"), "g1": ("a", "2")}


def test_bound_pod_keeps_the_domain_of_its_unit() -> None:
    nodes = racks()
    gang = Unit("gang", "rack", "", (), (Pod("bound", a_shape(), node="a-2-2"), *pods("p", 1)))
    assert place(nodes, gang, {"a-2-2": used(8)}) == {"bound": "a-2-2", "p0": "a-2-1"}
    full = refuse(nodes, gang, {"a-2-2": used(8), "a-2-1": used(1)})
    assert Reason.BOUND_ELSEWHERE in reasons(full)


def test_gang_follows_the_domain_it_is_given() -> None:
    assert rack_of(place(racks("ab"), a_gang(2, "rack"), within=("b",))) <= {"b-1", "b-2"}
    assert refuse(racks("ab"), a_gang(5), within=("b",)).domains == 1


def test_excluded_domain_is_not_tried() -> None:
    assert rack_of(place(racks(), a_gang(2, "rack"), excluded={("a", "1"): "back-off"})) == {"a-2"}
    both = {("a",): "back-off"}
    answer = refuse(racks(), a_gang(2, "rack"), excluded=both)
    assert reasons(answer) == {Reason.EXCLUDED}
    assert answer.fits_if_empty


def test_former_domain_is_chosen_among_equals() -> None:
    assert rack_of(place(racks(), a_gang(2, "rack"), former=("a", "2"))) == {"a-2"}
    assert rack_of(place(racks(), a_gang(2, "rack"), former=("a", "1"))) == {"a-1"}


def test_domain_with_room_for_what_follows_comes_first() -> None:
    nodes = [*racks("a", 1, 2), *racks("b", 1, 4)]
    use = {"a-1-1": used(1)}
    gang = Unit("gang", "zone", "", (), pods("p", 1))
    assert rack_of(place(nodes, gang, use)) == {"a-1"}
    further = (Unit("later", "", "", (), pods("later", 3)),)
    answer = solve(ClusterIndex(LEVELS, nodes, use), Problem(gang, further=further))
    assert isinstance(answer, Placed)
    assert (rack_of(dict(answer.nodes)), answer.room_for_further) == ({"b-1"}, True)
    assert answer.nodes.keys() == {"p0"}
    too_many = (Unit("later", "", "", (), pods("later", 9)),)
    answer = solve(ClusterIndex(LEVELS, nodes, use), Problem(gang, further=too_many))
    assert isinstance(answer, Placed)
    assert not answer.room_for_further


def test_domain_with_room_for_extra_pods_comes_first() -> None:
    nodes = [*racks("a", 1, 2), *racks("b", 1, 4)]
    use = {"a-1-1": used(1)}
    extra = tuple(replace(pod, extra=True) for pod in pods("extra", 2))
    gang = Unit("gang", "zone", "", (), (*pods("p", 1), *extra))

    def placed_in(problem: Problem) -> tuple[set[str], int]:
        answer = solve(ClusterIndex(LEVELS, nodes, use), problem)
        assert isinstance(answer, Placed)
        return rack_of(dict(answer.nodes)), len(answer.nodes)

    assert placed_in(Problem(gang)) == ({"a-1"}, 1)
    assert placed_in(Problem(gang, looks_ahead=True)) == ({"b-1"}, 3)
    later = (Unit("later", "", "", (), pods("later", 1)),)
    assert placed_in(Problem(gang, further=later, looks_ahead=True)) == ({"b-1"}, 3)
    too_many = replace(gang, pods=(*gang.pods, *(replace(pod, extra=True) for pod in pods("more", 9))))
    assert placed_in(Problem(too_many, looks_ahead=True)) == ({"a-1"}, 1)


def test_later_gang_with_the_name_of_a_part_leaves_its_domain() -> None:
    """Upstream's names: the first scaled gang of a group has the name of the group's first replica."""
    part = Unit("wl-0-x-0", "rack", "", (), pods("base", 2))
    later = Unit("wl-0-x-0", "rack", "", (), pods("later", 2))
    gang = Unit("wl-0", "zone", parts=(part,))
    answer = solve(ClusterIndex(LEVELS, racks("a", 2, 2)), Problem(gang, further=(later,)))
    assert isinstance(answer, Placed)
    assert answer.room_for_further
    assert rack_of(dict(answer.nodes)) == {"-".join(answer.domains["wl-0-x-0"])}


def test_pods_of_lower_priority_count_as_gone_on_request() -> None:
    use = {node.name: used(8, priority=5) for node in racks()}
    assert Reason.INSUFFICIENT in reasons(refuse(racks(), a_gang(), use))
    assert place(racks(), a_gang(), use, preempt_below=6)
    refuse(racks(), a_gang(), use, preempt_below=5)


def test_reservations_are_named_and_not_preempted() -> None:
    use = {node.name: NodeUse(reserved={GPU: 8, "pods": 1}) for node in racks()}
    assert Reason.RESERVED in reasons(refuse(racks(), a_gang(), use, preempt_below=100))


def test_no_pod_is_preempted_beside_a_reservation() -> None:
    """Until it has left, a nomination beside the reserved one would keep the other gang's pod out."""
    beside = {node.name: NodeUse({5: {GPU: 4, "pods": 1}}, {GPU: 1, "pods": 1}) for node in racks()}
    gang = a_gang(1, shape=PodShape({GPU: 6, "pods": 1}))
    refuse(racks(), gang, beside, preempt_below=6)
    alone = {name: NodeUse(use.by_priority) for name, use in beside.items()}
    assert place(racks(), gang, alone, preempt_below=6)


def test_extra_pods_are_placed_if_there_is_room() -> None:
    gang = Unit("gang", "rack", "", (), (*pods("p", 1), *pods("extra", 2, extra=True)))
    found = place(racks(), gang)
    assert len(found) == 2
    assert len(rack_of(found)) == 1


def test_one_fabric_pod_per_node() -> None:
    shape = a_shape(1, fabric=True)
    assert len(set(place(racks(), a_gang(2, "rack", shape=shape)).values())) == 2
    refuse(racks(), a_gang(3, "rack", shape=shape))
    taken = {"a-1-1": NodeUse({0: {FABRIC_POD: 1}}), "a-2-1": NodeUse({0: {FABRIC_POD: 1}})}
    refuse(racks(), a_gang(2, "rack", shape=shape), taken)


def test_work_limit_gives_up_and_claims_nothing() -> None:
    index = ClusterIndex(LEVELS, racks("abc"))
    assert isinstance(solve(index, Problem(a_gang(2, "rack")), work_limit=1), GaveUp)
    assert isinstance(solve(index, Problem(a_gang(2, "rack")), work_limit=1000), Placed)


def test_answer_does_not_depend_on_the_order_of_nodes() -> None:
    gang = a_gang(3, "zone", "rack", a_shape(4))
    assert place(racks("ab"), gang) == place(racks("ab")[::-1], gang)


def test_arrangement_that_fits_only_one_way_is_found() -> None:
    nodes = [a_node("a/1/n1", 5), a_node("a/1/n2", 4)]
    mixed = tuple(Pod(f"p{i}", a_shape(gpus)) for i, gpus in enumerate((3, 2, 2, 2)))
    assert place(nodes, Unit("gang", "rack", "", (), mixed))


def test_unfit_gang_that_an_empty_cluster_holds_says_so() -> None:
    use = {node.name: used(8) for node in racks()}
    assert refuse(racks(), a_gang(2, "rack"), use).fits_if_empty is True
    answer = refuse(racks(), a_gang(3, "rack"), use)
    assert answer.fits_if_empty is False
    assert Reason.TOO_LARGE in reasons(answer)


def test_explanation_names_unit_domain_and_amounts() -> None:
    part = Unit("workers", "rack", "", (), pods("w", 2))
    use = {"a-1-1": used(3), "a-2-1": used(3), "a-2-2": used(3)}
    answer = refuse(racks(), Unit("gang", "zone", "", (part,)), use)
    (report,) = answer.reports
    assert (report.unit, report.domain) == ("workers", ("a", "1"))
    (short,) = (each for each in report.shortages if each.reason is Reason.INSUFFICIENT and each.nodes)
    assert (short.resource, short.nodes, short.have, short.need) == (GPU, 1, 13, 16)


def test_pods_without_accelerators_do_not_break_a_rack() -> None:
    router = PodShape({"cpu": 1000, "pods": 1})
    answer = solve(ClusterIndex(LEVELS, racks()), Problem(a_gang(1, shape=router)))
    assert isinstance(answer, Placed)
    assert answer.broken == (0, 0)
    plain = ClusterIndex(LEVELS, [Node("n", {"zone": "a"}, {"cpu": 9000, "pods": 9})])
    answer = solve(plain, Problem(a_gang(1, shape=router)))
    assert isinstance(answer, Placed)
    assert answer.broken == (1, 0)


def test_resource_that_no_node_has_is_named_with_its_amount() -> None:
    shape = PodShape({"example.com/none": 2, "pods": 1})
    answer = refuse(racks(), Unit("gang", "rack", "", (), pods("p", 3, shape)))
    (report,) = answer.reports
    (short,) = report.shortages
    assert (short.reason, short.resource, short.need) == (Reason.INSUFFICIENT, "example.com/none", 6)
    assert answer.fits_if_empty is False


def test_part_without_level_is_explained_by_its_nodes() -> None:
    """Other nodes have enough of the resource, and the pods do not select them."""
    nodes = [Node(f"n{i}", {"zone": "a", "chosen": str(i < 3)}, {GPU: 1, "pods": 9}) for i in range(8)]
    shape = PodShape({GPU: 1, "pods": 1}, {"chosen": "True"})
    gang = Unit("gang", parts=(Unit("workers", pods=pods("w", 2, shape)),))
    answer = refuse(nodes, gang, {"n0": used(1), "n1": used(1)})
    (report,) = answer.reports
    assert [(each.reason, each.nodes, each.have, each.need) for each in report.shortages] == [
        (Reason.SELECTOR, 5, 5, 2),
        (Reason.INSUFFICIENT, 2, 1, 2),
    ]
