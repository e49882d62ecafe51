"""The solver against every possible placement, on small random clusters."""

from __future__ import annotations

from hypothesis import given

from grove.topology.placement.answers import NoFit, Objective, Placed
from grove.topology.placement.candidates import gang_domains
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Pod, Problem, Unit
from grove.topology.placement.search.complete import Search
from grove.topology.placement.search.state import State, Work
from grove.topology.placement.solve import solve
from grove.topology.placement.units import Compiler
from tests.fuzzing import budget
from tests.topology.placement.brute_force import Cluster, brute_force, is_valid, objective, pods_of
from tests.topology.placement.builders import LEVELS, a_node, a_shape
from tests.topology.placement.instances import instances

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


@budget(800)
@given(instances)
def test_small_gang_in_small_cluster_gets_the_optimum(instance: tuple[Cluster, Problem]) -> None:
    cluster, problem = instance
    levels, nodes, use = cluster
    expected = brute_force(cluster, problem)
    answer = solve(ClusterIndex(levels, nodes, use), problem, AMPLE, AMPLE)
    if expected is None:
        assert isinstance(answer, NoFit)
        assert answer.reports
    else:
        assert isinstance(answer, Placed)
        assert is_valid(cluster, problem, answer.nodes)
        assert answer.optimal
        assert answer.nodes.keys() == {pod.name for pod in pods_of(problem.gang)}
        assert objective(levels, nodes, use, problem.gang, answer.nodes) == expected
        assert answer.objective == expected


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
