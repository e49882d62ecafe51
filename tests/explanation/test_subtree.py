"""Which object a user means, and what belongs to it."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.meta import OwnerReference
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.model import ObjectRef
from grove.explanation.subtree import Objects, UnknownObject, find, subtree
from tests.views.builders import a_simulator, found


@pytest.fixture(scope="module")
def objects() -> Objects:
    """Set demo: clique router of 3 pods; group model of 2 replicas with a leader each."""
    read = found(a_simulator())
    return Objects((), read.sets, read.groups, read.cliques, read.gangs, read.pods)


def names(found_objects) -> list[str]:
    return sorted(each.metadata.name for each in found_objects)


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        ("demo", "PodCliqueSet", "demo"),
        ("set/demo", "PodCliqueSet", "demo"),
        ("PCS/demo", "PodCliqueSet", "demo"),
        ("demo-0", "PodGang", "demo-0"),
        ("pg/demo-0", "PodGang", "demo-0"),
        ("demo-0-router", "PodClique", "demo-0-router"),
        ("podcliques/demo-0-router", "PodClique", "demo-0-router"),
        ("group/demo-0-model", "PodCliqueScalingGroup", "demo-0-model"),
    ],
)
def test_name_with_or_without_kind_is_found(objects, written, kind, name):
    namespace = objects.sets[0].metadata.namespace
    assert find(objects, written, namespace) == ObjectRef(kind, name, namespace)


@pytest.mark.parametrize(
    ("written", "namespace", "line"),
    [
        ("dmo", "", "no workload dmo in namespace {here}: did you mean demo?"),
        ("gang/demo-9", "", "no PodGang demo-9 in namespace {here}: did you mean demo-0?"),
        (
            "demo",
            "other",
            "no workload demo in namespace other: there is one in namespace {here}: add -n {here}",
        ),
        ("zzz", "", "no workload zzz in namespace {here}: grove get -A lists all sets"),
        ("job/demo", "", "job/demo: unknown kind job: choose one of clique, gang, graph, group, pod, set"),
    ],
)
def test_unknown_name_has_a_suggestion(objects, written, namespace, line):
    here = objects.sets[0].metadata.namespace
    with pytest.raises(UnknownObject) as error:
        find(objects, written, namespace or here)
    assert str(error.value) == line.format(here=here)


def test_set_has_everything_below_it(objects):
    tree = subtree(objects, find(objects, "demo", objects.sets[0].metadata.namespace))
    assert (len(tree.groups), len(tree.cliques), len(tree.gangs), len(tree.pods)) == (1, 3, 2, 5)


def test_clique_has_its_gang_and_pods(objects):
    tree = subtree(objects, find(objects, "demo-0-router", objects.sets[0].metadata.namespace))
    assert names(tree.cliques) == ["demo-0-router"]
    assert names(tree.gangs) == ["demo-0"]
    assert len(tree.pods) == 3
    assert tree.workload is objects.sets[0]


def test_gang_has_its_cliques_and_pods_only(objects):
    tree = subtree(objects, find(objects, "gang/demo-0", objects.sets[0].metadata.namespace))
    assert names(tree.cliques) == ["demo-0-model-0-leader", "demo-0-router"]
    assert len(tree.pods) == 4


def test_pod_has_itself_and_what_it_belongs_to(objects):
    pod = objects.pods[0].metadata
    tree = subtree(objects, find(objects, f"pod/{pod.name}", pod.namespace))
    assert names(tree.pods) == [pod.name]
    assert len(tree.cliques) == len(tree.gangs) == 1


def a_graph(name: str, namespace: str) -> DynamoGraphDeployment:
    body = {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": {}}
    return msgspec.convert(body, DynamoGraphDeployment)


def test_graph_has_what_its_set_has(objects):
    workload = objects.sets[0]
    namespace = workload.metadata.namespace
    kind = DynamoGraphDeployment.KIND
    owner = OwnerReference(kind.api_version, kind.name, "llm", "llm", controller=True)
    owned = replace(workload, metadata=replace(workload.metadata, owner_references=(owner,)))
    both = replace(objects, graphs=(a_graph("llm", namespace),), sets=(owned,))
    tree = subtree(both, find(both, "llm", namespace))
    assert (tree.about.kind, tree.workload, len(tree.pods)) == ("DynamoGraphDeployment", owned, 5)
    assert subtree(both, find(both, "set/demo", namespace)).graph is both.graphs[0]


def test_graph_without_set_has_nothing(objects):
    alone = replace(objects, graphs=(a_graph("llm", "default"),), sets=())
    tree = subtree(alone, find(alone, "graph/llm", "default"))
    assert (tree.graph, tree.workload, tree.pods) == (alone.graphs[0], None, ())
