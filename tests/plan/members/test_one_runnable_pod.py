"""At most one pod of a clique and index may run: every path that replaces a pod deletes first.

The checker of `tests.runnable` follows every write of the plan, in any order that its dependencies allow, and
every prefix of it: an operator may stop after each write.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from grove.api.naming import labels, well_known
from grove.plan.model import Plan
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.actors import living
from tests.plan.simulator.api_server import Conflict
from tests.plan.simulator.invariants import alive, check_history, check_settled
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.simulator.updates import change, converge, deployed

ORDERS = range(8)
GATE = [{"name": well_known.GANG_GATE}]


def deletes(plan: Plan) -> list[str]:
    return [intent.id for intent in plan.intents if intent.id.startswith("delete Pod ")]


def updated() -> Simulator:
    """A pod of a clique is about to be replaced by an update."""
    sim = deployed("a:2/1")
    change(sim)
    return until_deletes(sim)


def updated_group() -> Simulator:
    """All pods of a replica of a group are about to be replaced by an update."""
    sim = deployed("a:1 b:2", "x:2/1=b")
    change(sim, "b")
    return until_deletes(sim)


def until_deletes(sim: Simulator) -> Simulator:
    for _ in range(10):
        if deletes(sim.plan()):
            return sim
        sim.reconcile_all()
    raise AssertionError("no pod is replaced")


def terminated() -> Simulator:
    """A gang that has been below its minimum for too long is about to be restarted."""
    sim = deployed("a:3", terminationDelay="1s")
    actors.crash(sim, min(sim.pods()))
    sim.reconcile_all()
    sim.now += 60
    return until_deletes(sim)


def ended() -> Simulator:
    sim = deployed("a:2/1")
    actors.fail(sim, min(sim.pods()))
    return sim


def ended_while_scaled() -> Simulator:
    """The surplus pod ended; the remaining one has its own index."""
    sim = deployed("a:2/1")
    actors.fail(sim, min(sim.pods()))
    sim.scale("PodClique", "wl-0-a", 3)
    return sim


def scaled_in_and_out() -> Simulator:
    """The gang has dropped a pod that is not deleted yet, and a new member has its index: a crash or a
    refused delete leaves this behind."""
    sim = deployed("a:2/1")
    (gang,) = sim.api.objects("PodGang")
    (group,) = gang["spec"]["podgroups"]
    group["podReferences"][1]["name"] = "wl-0-a-xxxxx"
    sim.api.patch("PodGang", "wl-0", {"spec": {"podgroups": [group]}})
    return sim


def gated_successor() -> Simulator:
    """A gated member has the index of a pod that is no longer a member."""
    sim = scaled_in_and_out()
    (old,) = (pod for pod in alive(sim) if pod.metadata.labels[labels.POD_INDEX] == "1")
    body = sim.api.get("Pod", old.metadata.name)
    kept = ("labels", "ownerReferences", "namespace")
    metadata = {key: body["metadata"][key] for key in kept}
    spec: dict[str, Any] = {**body["spec"], "schedulingGates": GATE}
    spec.pop("nodeName")
    sim.api.create({**body, "metadata": {**metadata, "name": "wl-0-a-xxxxx"}, "spec": spec})
    return sim


def orphaned_successor() -> Simulator:
    """A member without owner has the index of a pod that is no longer a member."""
    sim = gated_successor()
    body = {"metadata": {"ownerReferences": None}, "spec": {"schedulingGates": None}}
    sim.api.patch("Pod", "wl-0-a-xxxxx", body)
    return sim


PATHS: list[Callable[[], Simulator]] = [
    updated,
    updated_group,
    terminated,
    ended,
    ended_while_scaled,
    scaled_in_and_out,
    gated_successor,
    orphaned_successor,
]


@pytest.mark.parametrize("seed", ORDERS)
@pytest.mark.parametrize("path", PATHS)
def test_pod_deleted_before_successor_in_any_write_order(path, seed) -> None:
    sim = path()
    plan = sim.plan()
    assert deletes(plan)
    assert sim.execute(plan, Random(seed))
    check_history(sim)
    converge(sim)
    check_history(sim)
    check_settled(sim)


@pytest.mark.parametrize("path", PATHS)
def test_crash_after_any_write_leaves_no_two_runnable_pods(path) -> None:
    writes = len(path().plan().intents)
    for stop in range(writes):
        sim = path()
        run = Run(sim, sim.plan(), Random(stop))
        for _ in range(stop):
            run.go_on()
        sim.restart_operator()
        converge(sim)
        check_history(sim)
        check_settled(sim)


@pytest.mark.parametrize("path", PATHS)
def test_refused_delete_delays_successor_until_it_succeeds(path, monkeypatch) -> None:
    sim = path()
    before = set(living(sim))
    delete = sim.api.delete

    def refuse(kind: str, *args: Any, **kwargs: Any) -> None:
        if kind == "Pod":
            raise Conflict("refused by a webhook")
        delete(kind, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(sim.api, "delete", refuse)
        for _ in range(3):
            assert not sim.execute(sim.plan())
            assert deletes(sim.plan()), "it is sent again"
    created = set(living(sim)) - before
    assert len(created) == (1 if path is ended_while_scaled else 0), "only where an index is free"
    converge(sim)
    check_history(sim)
    check_settled(sim)


def test_terminating_pod_does_not_delay_its_successor() -> None:
    sim = deployed("a:1")
    (old,) = sim.pods()
    actors.delete(sim, old)
    sim.settle()
    assert len(sim.pods()) == 2
    assert len(alive(sim)) == 1
    check_history(sim)


def test_pods_of_other_indices_are_not_waited_for() -> None:
    """A restart replaces all pods at once: each successor waits for its own predecessor only."""
    plan = terminated().plan()
    waits = [
        sum(after.startswith("delete Pod ") for after in intent.after)
        for intent in plan.intents
        if intent.id.startswith("create Pod ")
    ]
    assert waits == [1, 1, 1]


def test_new_set_waits_for_no_delete() -> None:
    assert not deletes(Simulator(a_set("a:2/1")).plan())
