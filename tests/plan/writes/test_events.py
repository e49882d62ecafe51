"""The events of pods, as part of the plan of their replica."""

from __future__ import annotations

from collections import Counter

import pytest

from grove.api.naming.annotations import FORCE_DELETE_AFTER
from grove.plan.model import Plan
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator, settled
from tests.plan.simulator.updates import change, converge


def notes(plan: Plan) -> list[tuple[str, str]]:
    return sorted((event.regarding.name, event.note) for event in plan.events)


def test_first_pods_of_clique_emit_no_event():
    sim = Simulator(a_set("a:2 b:1", "x:2/1=b"))
    assert sim.plan().events == ()


def test_scale_out_emits_event_on_clique_for_each_pod():
    sim = settled(a_set("a:1"))
    before = set(sim.pods())
    sim.scale("PodClique", "wl-0-a", 3)
    plan = sim.plan()
    sim.execute(plan)
    assert notes(plan) == [("wl-0-a", f"Created pod {name}") for name in sorted(set(sim.pods()) - before)]
    uid = sim.api.get("PodClique", "wl-0-a")["metadata"]["uid"]
    assert {(event.regarding.uid, event.reason, event.reporter) for event in plan.events} == {
        (uid, "PodCreateSuccessful", "podclique-controller")
    }
    assert {event.intent for event in plan.events} < {intent.id for intent in plan.intents}


def test_replaced_pod_is_named_in_event_of_successor():
    sim = settled(a_set("a:2"))
    former = min(sim.pods())
    actors.fail(sim, former)
    sim.now += 1000
    plan = sim.plan()
    (create,) = (intent for intent in plan.intents if intent.id.startswith("create Pod "))
    created, removed = plan.events
    assert created.note == f"Created pod {create.target.name} in place of {former}"
    assert removed.note == f"Deleted pod {former}"
    assert (created.intent, removed.unless) == (create.id, create.id)


@pytest.mark.parametrize(
    ("cliques", "groups", "budget", "replaced"),
    [
        ("a:2/1", "", 1, {("PodClique", "wl-0-a", ""): 1}),
        ("a:4/1", "", 3, {("PodClique", "wl-0-a", ""): 3}),
        ("b:2 c:1", "x:3/1=b,c", 1, {("PodCliqueScalingGroup", "wl-0-x", " of replica 0"): 3}),
        (
            "a:1 b:2 c:1",
            "x:3/1=b,c",
            1,
            {("PodClique", "wl-0-a", ""): 1, ("PodCliqueScalingGroup", "wl-0-x", " of replica 0"): 3},
        ),
    ],
)
def test_pods_that_update_replaces_have_joint_event(cliques, groups, budget, replaced):
    body = a_set(cliques, groups)
    for clique in body["spec"]["template"]["cliques"]:
        clique["rollingUpdate"] = {"maxUnavailable": budget} if not groups else None
    sim = Simulator(body)
    converge(sim)
    change(sim)
    while not (plan := sim.plan()).events:
        assert sim.reconcile_all()
    created = [event for event in plan.events if event.reason == "PodCreateSuccessful"]
    joint = Counter((event.regarding.kind, event.regarding.name, event.together) for event in created)
    assert joint == {
        (kind, name, f"Created {{count}} pods{of} in place of outdated ones"): pods
        for (kind, name, of), pods in replaced.items()
    }
    for event in created:
        found = sim.api.get(event.regarding.kind, event.regarding.name)
        assert event.regarding.uid == found["metadata"]["uid"]
        assert event.reporter == f"{event.regarding.kind.lower()}-controller"


def test_all_pods_of_clique_share_one_reference():
    plan = Simulator(a_set("a:3")).plan()
    creates = [intent for intent in plan.intents if intent.id.startswith("create Pod ")]
    assert len(creates) == 3
    assert len({id(create.regarding) for create in creates}) == 1
    assert creates[0].regarding.name == "wl-0-a"


def test_force_deleted_pod_emits_event_on_clique():
    sim = settled(a_set("a:1"))
    (stuck,) = sim.pods()
    actors.schedule(sim, stuck)
    actors.delete(sim, stuck)
    sim.settle()
    sim.api.patch("PodCliqueSet", "wl", {"metadata": {"annotations": {FORCE_DELETE_AFTER: "5m"}}})
    sim.now += 1000
    plan = sim.plan()
    assert [intent.id for intent in plan.intents] == [f"delete Pod ns/{stuck}"]
    assert notes(plan) == [("wl-0-a", f"Deleted pod {stuck}")]
