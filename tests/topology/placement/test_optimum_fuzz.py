"""The solver against every possible placement, on small random clusters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.topology.placement.answers import Answer, NoFit, Objective, Placed
from grove.topology.placement.candidates import gang_domains
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Pod, Problem, Unit
from grove.topology.placement.search.complete import Search
from grove.topology.placement.search.state import State, Work
from grove.topology.placement.solve import solve
from grove.topology.placement.units import Compiler
from tests.fuzzing import budget
from tests.topology.placement.brute_force import (
    Cluster,
    brute_force,
    brute_force_in_partitions,
    is_valid,
    objective,
    pods_of,
    unmet_partitions,
)
from tests.topology.placement.builders import LEVELS, a_node, a_shape
from tests.topology.placement.instances import instances, packed_instances

AMPLE = 10_000_000


def search_only(cluster: Cluster, problem: Problem) -> Objective | None:
    """What the complete search finds without an incumbent and without bounds."""
    index = ClusterIndex(*cluster)
    compiler = Compiler(index)
    gang = compiler.compile(problem.gang)
    found = None
    for domain in gang_domains(index, gang, problem):
        state = State(index, index.actual)
        search = Search(index, state, gang, compiler.classes, found, Work(AMPLE))
        search.run(domain)
        found = search.best
    return None if found is None else found[0]


def solved(cluster: Cluster, problem: Problem, *, fits: bool) -> Answer:
    """The answer, which is a valid optimum if the gang fits."""
    answer = solve(ClusterIndex(*cluster), problem, AMPLE, AMPLE)
    if fits:
        assert isinstance(answer, Placed)
        assert is_valid(cluster, problem, answer.nodes)
        assert answer.optimal
    else:
        assert isinstance(answer, NoFit)
        assert answer.reports
    return answer


@budget(800)
@given(instances)
def test_small_gang_in_small_cluster_gets_the_optimum(instance: tuple[Cluster, Problem]) -> None:
    cluster, problem = instance
    levels, nodes, use = cluster
    expected = brute_force(cluster, problem)
    answer = solved(cluster, problem, fits=expected is not None)
    if isinstance(answer, Placed):
        assert answer.nodes.keys() == {pod.name for pod in pods_of(problem.gang)}
        assert objective(levels, nodes, use, problem.gang, answer.nodes) == expected
        assert answer.objective == expected


@budget(800)
@given(packed_instances)
def test_gang_in_partitions_gets_the_optimum(instance: tuple[Cluster, Problem]) -> None:
    cluster, problem = instance
    expected = brute_force_in_partitions(cluster, problem)
    answer = solved(cluster, problem, fits=expected is not None)
    if isinstance(answer, Placed):
        assert (unmet_partitions(cluster, problem, dict(answer.nodes)), answer.objective) == expected


@budget(800)
@given(packed_instances, st.integers(1, 60))
def test_preferred_partitions_never_keep_a_gang_waiting(instance: tuple[Cluster, Problem], work: int) -> None:
    """Also if the work is so limited that hardly anything is found."""
    cluster, problem = instance
    preferred = tuple(replace(each, required=False) for each in problem.partitions)
    alone = replace(problem, gang=without_partitions(problem.gang), partitions=())
    if isinstance(solve(ClusterIndex(*cluster), alone, work), Placed):
        answer = solve(ClusterIndex(*cluster), replace(problem, partitions=preferred), work)
        assert isinstance(answer, Placed)
        assert is_valid(cluster, alone, answer.nodes)


def without_partitions(unit: Unit) -> Unit:
    pods = tuple(replace(pod, shape=replace(pod.shape, partitions=())) for pod in unit.pods)
    return replace(unit, pods=pods, parts=tuple(map(without_partitions, unit.parts)))


@budget(500)
@given(instances)
def test_complete_search_alone_finds_the_optimum(instance: tuple[Cluster, Problem]) -> None:
    cluster, problem = instance
    assert search_only(cluster, problem) == brute_force(cluster, problem)


def test_complete_search_separates_nodes_by_selectors() -> None:
    nodes = [a_node(f"a/1/n{i}", labels={"disk": "ssd"} if i == 0 else {}) for i in range(2)]
    shapes = (a_shape(), a_shape(node_selector={"disk": "ssd"}))
    gang = Unit("gang", "rack", "", (), tuple(Pod(f"p{i}", shape) for i, shape in enumerate(shapes)))
    assert search_only((LEVELS, nodes, {}), Problem(gang)) is not None
