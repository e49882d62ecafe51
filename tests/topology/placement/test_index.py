"""The index of a cluster, changed node by node."""

from __future__ import annotations

from random import Random

from grove.topology.placement.answers import Placed
from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import Node, NodeUse, Problem
from grove.topology.placement.solve import solve
from tests.fuzzing import seeds
from tests.topology.placement.builders import GPU, LEVELS, a_gang, a_node, racks, used
from tests.topology.placement.instances import Generator


def contents(index: ClusterIndex) -> object:
    """All that the solver reads, with names instead of positions."""
    names = {i: name for name, i in index.ids.items()}
    resources = sorted(index.dims)

    def amounts(vector: list[int] | tuple[int, ...]) -> dict[str, int]:
        return {name: vector[index.dims[name]] for name in resources if vector[index.dims[name]]}

    def view(each: View) -> object:
        free = {names[i]: (amounts(each.free[i]), each.busy_nodes[i]) for i in names}
        sums = {domain: amounts(vector) for domain, vector in each.sums.items() if any(vector)}
        return free, sums, {domain: count for domain, count in each.busy.items() if count}

    domains = sorted(index.members)
    inside = {(d, n): sorted(index.subdomains(d, n)) for d in domains for n in range(len(index.levels))}
    members = {domain: [names[i] for i in each] for domain, each in index.members.items() if each}
    direct = {domain: [names[i] for i in each] for domain, each in index.direct.items() if each}
    children = {domain: dict(each) for domain, each in index.children.items()}
    return members, direct, children, inside, view(index.actual), view(index.empty)


def test_changed_index_equals_a_new_one_fuzz() -> None:
    for seed, random in seeds(100):
        generator = Generator(seed)
        levels, nodes, use = generator.cluster()
        index = ClusterIndex(levels, nodes, use)
        now = {node.name: node for node in nodes}
        for _ in range(6):
            _change(random, generator, index, now, use)
        expected = ClusterIndex(levels, now.values(), use)
        assert contents(index) == contents(expected), seed


def test_view_without_pods_equals_a_cluster_without_them_fuzz() -> None:
    for seed, random in seeds(100):
        levels, nodes, generated = Generator(seed).cluster()
        use = {
            name: NodeUse({**each.by_priority, 5: {GPU: random.randint(0, 2)}}, each.reserved)
            for name, each in generated.items()
        }
        index = ClusterIndex(levels, nodes, use)
        for node in random.sample(nodes, len(nodes) // 3):
            index.remove_node(node.name)
        priority = random.choice((None, 0, 1, 5, 6))
        vacated = {node.name for node in nodes if random.random() < 0.3}
        left = {
            name: NodeUse(
                {
                    each: amounts
                    for each, amounts in known.by_priority.items()
                    if name not in vacated and (priority is None or each >= priority or known.reserved)
                },
                known.reserved,
            )
            for name, known in use.items()
        }
        before, found = contents(index), index.view_without(priority, vacated)
        assert contents(index) == before, "the index is unchanged"
        index.actual = found
        assert contents(index) == contents(ClusterIndex(levels, list(index), left)), seed


def _change(
    random: Random, generator: Generator, index: ClusterIndex, now: dict[str, Node], use: dict[str, NodeUse]
) -> None:
    _, nodes, uses = generator.cluster()
    for node in nodes:
        match random.choice(("set", "use", "remove")):
            case "set":
                now[node.name] = node
                index.set_node(node)
            case "use" if node.name in now and node.name in uses:
                use[node.name] = uses[node.name]
                index.set_use(node.name, uses[node.name])
            case "remove":
                now.pop(node.name, None)
                use.pop(node.name, None)
                index.remove_node(node.name)


def test_use_of_an_unknown_node_is_ignored() -> None:
    index = ClusterIndex(LEVELS, racks())
    index.set_use("gone", used(8))
    index.remove_node("gone")
    assert len(list(index)) == 4


def test_one_rack_label_in_two_zones_is_two_domains() -> None:
    index = ClusterIndex(LEVELS, racks("ab", racks_a_zone=1))
    assert sorted(index.subdomains((), 1)) == [("a", "1"), ("b", "1")]
    assert solve(index, Problem(a_gang(3, "rack"))).__class__.__name__ == "NoFit"


def test_node_without_label_is_in_no_domain_of_the_level() -> None:
    index = ClusterIndex(LEVELS, [a_node("a//n1"), a_node("/1/n2")])
    assert index.domain_at(index.ids["n1"], 1) is None
    assert index.domain_at(index.ids["n2"], 1) is None, "its rack has no zone"
    assert sorted(index.subdomains(("a",), 1)) == []


def test_resource_of_a_later_node_is_0_on_earlier_ones() -> None:
    index = ClusterIndex(LEVELS, [Node("n1", {}, {"cpu": 1, "pods": 1})])
    index.set_node(a_node("a/1/n2"))
    answer = solve(index, Problem(a_gang(1)))
    assert isinstance(answer, Placed)
    assert answer.nodes == {"p0": "n2"}
    assert index.actual.free[index.ids["n1"]][index.dims[GPU]] == 0
