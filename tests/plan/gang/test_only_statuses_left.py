"""Which replicas have nothing but statuses left to write while their pods start."""

from __future__ import annotations

import pytest

from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import V1Beta1
from tests.plan.builders import Body, a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator
from tests.plan.simulator.updates import change, converge, deployed


def with_gates(body: Body) -> Body:
    for clique in body["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["schedulingGates"] = [{"name": "example.com/later"}]
    return body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (a_set("a:2"), True),
        (a_set("a:2 b:1"), True),
        (a_set("a:1 b:1", "g:2/2=b"), True),
        (a_set("a:1 b:1", "g:2/1=b"), False),
        (with_gates(a_set("a:1")), False),
    ],
    ids=["one clique", "two cliques", "one gang", "scaled gang", "gates of the user"],
)
def test_replica_of_one_gang_without_gates(body: Body, expected: bool) -> None:
    sim = Simulator(body)
    assert sim.step().only_statuses_left is expected
    for names in ((), actors.living(sim)):
        actors.schedule(sim, *names)
        assert sim.step().only_statuses_left is expected


def test_replica_with_pods_above_the_minimum_that_wait() -> None:
    sim = Simulator(a_set("a:3/1"))
    sim.scheduler = Kube(V1Beta1())
    assert not sim.step().only_statuses_left


def test_replica_in_an_update() -> None:
    sim = deployed("a:1")
    assert sim.plan().only_statuses_left
    change(sim)
    sim.reconcile_all()
    assert not sim.plan().only_statuses_left
    converge(sim)
    assert sim.plan().only_statuses_left
