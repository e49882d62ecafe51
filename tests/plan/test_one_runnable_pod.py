"""At most one pod of a clique and index may run: every path that replaces a pod deletes first.

The checker of `tests.runnable` follows every write of the plan, in any order that its dependencies allow, and
every prefix of it: an operator may stop after each write.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from grove.api import labels, marks
from grove.plan.model import Plan
from tests.plan import hands
from tests.plan.api_server import Conflict
from tests.plan.builders import a_set
from tests.plan.hands import living
from tests.plan.invariants import alive, check_history, check_settled
from tests.plan.updating import change, deployed, quiet
from tests.plan.world import Run, World

ORDERS = range(8)
GATE = [{"name": marks.GANG_GATE}]


def deletes(plan: Plan) -> list[str]:
    return [intent.id for intent in plan.intents if intent.id.startswith("delete Pod ")]


def updated() -> World:
    """A pod of a clique is about to be replaced by an update."""
    world = deployed("a:2/1")
    change(world)
    return until_deletes(world)


def updated_group() -> World:
    """All pods of a replica of a group are about to be replaced by an update."""
    world = deployed("a:1 b:2", "x:2/1=b")
    change(world, "b")
    return until_deletes(world)


def until_deletes(world: World) -> World:
    for _ in range(10):
        if deletes(world.plan()):
            return world
        world.tend()
    raise AssertionError("no pod is replaced")


def terminated() -> World:
    """A gang that has been below its minimum for too long is about to be restarted."""
    world = deployed("a:3", terminationDelay="1s")
    hands.crash(world, min(world.pods()))
    world.tend()
    world.now += 60
    return until_deletes(world)


def ended() -> World:
    world = deployed("a:2/1")
    hands.fail(world, min(world.pods()))
    return world


def ended_while_scaled() -> World:
    """The pod that is scaled away ended; the one that stays has its own index."""
    world = deployed("a:2/1")
    hands.fail(world, min(world.pods()))
    world.scale("PodClique", "wl-0-a", 3)
    return world


def scaled_in_and_out() -> World:
    """The gang has forgotten a pod that was not deleted yet, and a new member has its index: a stopped
    operator or a refused delete leaves this behind."""
    world = deployed("a:2/1")
    (gang,) = world.api.objects("PodGang")
    (group,) = gang["spec"]["podgroups"]
    group["podReferences"][1]["name"] = "wl-0-a-xxxxx"
    world.api.patch("PodGang", "wl-0", {"spec": {"podgroups": [group]}})
    return world


def gated_successor() -> World:
    """A member that is gated has the index of a pod that is no member any more."""
    world = scaled_in_and_out()
    (old,) = (pod for pod in alive(world) if pod.metadata.labels[labels.POD_INDEX] == "1")
    body = world.api.get("Pod", old.metadata.name)
    kept = ("labels", "ownerReferences", "namespace")
    metadata = {key: body["metadata"][key] for key in kept}
    spec: dict[str, Any] = {**body["spec"], "schedulingGates": GATE}
    spec.pop("nodeName")
    world.api.create({**body, "metadata": {**metadata, "name": "wl-0-a-xxxxx"}, "spec": spec})
    return world


def orphaned_successor() -> World:
    """A member that has no owner has the index of a pod that is no member any more."""
    world = gated_successor()
    body = {"metadata": {"ownerReferences": None}, "spec": {"schedulingGates": None}}
    world.api.patch("Pod", "wl-0-a-xxxxx", body)
    return world


PATHS: list[Callable[[], World]] = [
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
def test_in_any_order_of_writes_a_pod_goes_before_its_successor_comes(path, seed) -> None:
    world = path()
    plan = world.plan()
    assert deletes(plan)
    assert world.carry_out(plan, Random(seed))
    check_history(world)
    quiet(world)
    check_history(world)
    check_settled(world)


@pytest.mark.parametrize("path", PATHS)
def test_an_operator_that_stops_after_any_write_leaves_no_two(path) -> None:
    writes = len(path().plan().intents)
    for stop in range(writes):
        world = path()
        run = Run(world, world.plan(), Random(stop))
        for _ in range(stop):
            run.go_on()
        world.restart_operator()
        quiet(world)
        check_history(world)
        check_settled(world)


@pytest.mark.parametrize("path", PATHS)
def test_a_refused_delete_holds_back_its_successor_until_it_succeeds(path, monkeypatch) -> None:
    world = path()
    before = set(living(world))
    delete = world.api.delete

    def refuse(kind: str, *args: Any, **kwargs: Any) -> None:
        if kind == "Pod":
            raise Conflict("refused by a webhook")
        delete(kind, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(world.api, "delete", refuse)
        for _ in range(3):
            assert not world.carry_out(world.plan())
            assert deletes(world.plan()), "it is sent again"
    created = set(living(world)) - before
    assert len(created) == (1 if path is ended_while_scaled else 0), "only where an index is free"
    quiet(world)
    check_history(world)
    check_settled(world)


def test_a_terminating_pod_does_not_hold_back_its_successor() -> None:
    world = deployed("a:1")
    (old,) = world.pods()
    hands.delete(world, old)
    world.settle()
    assert len(world.pods()) == 2
    assert len(alive(world)) == 1
    check_history(world)


def test_pods_of_other_indices_are_not_waited_for() -> None:
    """A restart replaces all pods at once: each successor waits for its own predecessor only."""
    plan = terminated().plan()
    waits = [
        sum(after.startswith("delete Pod ") for after in intent.after)
        for intent in plan.intents
        if intent.id.startswith("create Pod ")
    ]
    assert waits == [1, 1, 1]


def test_a_new_set_waits_for_no_delete() -> None:
    assert not deletes(World(a_set("a:2/1")).plan())
