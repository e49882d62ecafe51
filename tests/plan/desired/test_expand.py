"""Gangs, members and startup order of upstream's own workloads, by tables written by hand."""

from __future__ import annotations

import pytest
import yaml

from tests.plan.builders import NAMESPACE, a_set
from tests.plan.simulator.invariants import check_settled
from tests.plan.simulator.simulator import Simulator
from tests.shared import shared_data

FULL = {"pc-a": (2, 2), "pc-b": (1, 1), "pc-c": (3, 3)}
LEAST = {"pc-a": (2, 1), "pc-b": (1, 1), "pc-c": (3, 1)}


def upstreams(name: str) -> Simulator:
    """One of upstream's workloads, converged."""
    body = yaml.safe_load(shared_data(f"workloads/{name}.yaml").read_text())
    body["metadata"]["namespace"] = NAMESPACE
    sim = Simulator(body)
    sim.settle()
    return sim


def gangs(sim: Simulator) -> dict[str, list[tuple[str, int, int]]]:
    """By gang: clique, number of pods named, minimum."""
    return {
        gang["metadata"]["name"]: [
            (group["name"], len(group["podReferences"]), group["minReplicas"])
            for group in gang["spec"]["podgroups"]
        ]
        for gang in sim.api.objects("PodGang")
    }


def starts_after(sim: Simulator) -> dict[str, list[str]]:
    return {
        clique["metadata"]["name"]: clique["spec"].get("startsAfter", [])
        for clique in sim.api.objects("PodClique")
    }


@pytest.mark.parametrize("number", [1, 3, 5])
def test_all_group_replicas_required_gives_one_gang_of_ten(number):
    name = f"workload{number}"
    sim = upstreams(name)
    members = [(f"{name}-0-pc-a", *FULL["pc-a"])]
    for replica in (0, 1):
        members += [(f"{name}-0-sg-x-{replica}-{clique}", *FULL[clique]) for clique in ("pc-b", "pc-c")]
    assert gangs(sim) == {f"{name}-0": members}
    assert len(sim.pods()) == 10


@pytest.mark.parametrize("number", [2, 4, 6])
def test_group_replica_above_min_available_gets_scaled_gang(number):
    name = f"workload{number}"
    sim = upstreams(name)
    base = [(f"{name}-0-pc-a", *LEAST["pc-a"])]
    base += [(f"{name}-0-sg-x-0-{clique}", *LEAST[clique]) for clique in ("pc-b", "pc-c")]
    scaled = [(f"{name}-0-sg-x-1-{clique}", *LEAST[clique]) for clique in ("pc-b", "pc-c")]
    assert gangs(sim) == {f"{name}-0": base, f"{name}-0-sg-x-0": scaled}
    assert len(sim.pods()) == 10


ORDERS = {
    "workload1": {"pc-a": [], "sg-x-0-pc-b": [], "sg-x-0-pc-c": [], "sg-x-1-pc-b": [], "sg-x-1-pc-c": []},
    "workload3": {
        "pc-a": [],
        "sg-x-0-pc-b": ["pc-a"],
        "sg-x-0-pc-c": ["sg-x-0-pc-b", "sg-x-1-pc-b"],
        "sg-x-1-pc-b": ["pc-a"],
        "sg-x-1-pc-c": ["sg-x-0-pc-b", "sg-x-1-pc-b"],
    },
    "workload4": {
        "pc-a": [],
        "sg-x-0-pc-b": ["pc-a"],
        "sg-x-0-pc-c": ["sg-x-0-pc-b"],
        "sg-x-1-pc-b": [],
        "sg-x-1-pc-c": ["sg-x-1-pc-b"],
    },
    "workload5": {
        "pc-a": [],
        "sg-x-0-pc-b": ["sg-x-0-pc-c", "sg-x-1-pc-c"],
        "sg-x-0-pc-c": ["pc-a"],
        "sg-x-1-pc-b": ["sg-x-0-pc-c", "sg-x-1-pc-c"],
        "sg-x-1-pc-c": ["pc-a"],
    },
    "workload6": {
        "pc-a": [],
        "sg-x-0-pc-b": ["pc-a"],
        "sg-x-0-pc-c": ["sg-x-0-pc-b"],
        "sg-x-1-pc-b": [],
        "sg-x-1-pc-c": ["sg-x-1-pc-b"],
    },
}


@pytest.mark.parametrize("name", ORDERS)
def test_startup_parents_are_limited_to_the_own_gang(name):
    expected = {
        f"{name}-0-{clique}": [f"{name}-0-{parent}" for parent in parents]
        for clique, parents in ORDERS[name].items()
    }
    assert starts_after(upstreams(name)) == expected


def test_worked_example_of_the_specification():
    """Spec core 4.3: 3 pods are guaranteed in the base gang, 6 are in it, the rest is a scaled gang."""
    sim = Simulator(a_set("pc-a:2/1 pc-b:1/1 pc-c:3/1", "sg-x:2/1=pc-b,pc-c"))
    sim.settle()
    assert gangs(sim) == {
        "wl-0": [("wl-0-pc-a", 2, 1), ("wl-0-sg-x-0-pc-b", 1, 1), ("wl-0-sg-x-0-pc-c", 3, 1)],
        "wl-0-sg-x-0": [("wl-0-sg-x-1-pc-b", 1, 1), ("wl-0-sg-x-1-pc-c", 3, 1)],
    }
    references = sim.references("wl-0")
    assert {name for names in references.values() for name in names} < set(sim.pods())


def test_gang_has_namespaced_references_and_priority():
    sim = Simulator(a_set("a:1", priorityClassName="urgent"))
    sim.settle()
    gang = sim.api.get("PodGang", "wl-0")
    (pod,) = sim.pods()
    group = {"name": "wl-0-a", "podReferences": [{"namespace": "ns", "name": pod}], "minReplicas": 1}
    assert gang["spec"] == {"podgroups": [group], "priorityClassName": "urgent"}


def test_each_replica_has_objects_of_its_own():
    sim = Simulator(a_set("a:1", replicas=2))
    sim.settle(0)
    sim.settle(1)
    assert gangs(sim) == {"wl-0": [("wl-0-a", 1, 1)], "wl-1": [("wl-1-a", 1, 1)]}
    assert [pod.spec.hostname for pod in sim.pods().values()] == ["wl-0-a-0", "wl-1-a-0"]


def test_clique_and_group_with_same_name_are_two_objects():
    """Their objects have the same name and different kinds."""
    sim = Simulator(a_set("a:2 b:1", "a:2/1=b"))
    sim.settle()
    owners = {
        body["metadata"]["name"]: body["metadata"]["ownerReferences"][0]["kind"]
        for body in sim.api.objects("PodClique")
    }
    group = "PodCliqueScalingGroup"
    assert owners == {"wl-0-a": "PodCliqueSet", "wl-0-a-0-b": group, "wl-0-a-1-b": group}
    assert len(sim.pods()) == 4
    check_settled(sim)
