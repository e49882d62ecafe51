"""Pace of an update: strategies, pauses, budgets, deadlines, and scaling during it."""

from __future__ import annotations

import pytest

from grove.api.naming import labels
from grove.plan.timestamps import rfc3339
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import Write
from tests.plan.simulator.invariants import check_history, check_settled, clique_of, expand_now
from tests.plan.simulator.simulator import OPERATOR, Simulator, read
from tests.plan.simulator.updates import (
    change,
    converge,
    deployed,
    names,
    outdated,
    progress,
    run_operator,
    status,
)


def test_on_delete_deletes_nothing_and_recreates_updated():
    sim = deployed("a:2/1 b:1 c:2/1", "x:2/1=b,c")
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    converge(sim)
    before = names(sim)
    sim.now += 50
    change(sim)
    converge(sim)
    assert names(sim) == before
    update_condition = progress(sim)
    assert update_condition["updateStartedAt"] == update_condition["updateEndedAt"] == rfc3339(sim.now)
    assert "currentlyUpdating" not in update_condition
    assert update_condition["updatedPodCliquesCount"] == 0
    for kind, name in (
        ("PodClique", "wl-0-a"),
        ("PodClique", "wl-0-x-1-c"),
        ("PodCliqueScalingGroup", "wl-0-x"),
    ):
        part = progress(sim, kind, name)
        assert part["updateStartedAt"] == part["updateEndedAt"] == rfc3339(sim.now)
    actors.delete(sim, sorted(sim.pods("wl-0-a"))[0])
    actors.delete(sim, sorted(sim.pods("wl-0-x-0-c"))[0])
    converge(sim)
    assert outdated(sim) == {
        "wl-0-a": 1, "wl-0-x-0-b": 1, "wl-0-x-0-c": 1, "wl-0-x-1-b": 1, "wl-0-x-1-c": 2
    }  # fmt: skip
    assert status(sim, "PodClique", "wl-0-a")["updatedReplicas"] == 1
    sim.scale("PodClique", "wl-0-a", 1)
    converge(sim)
    assert outdated(sim)["wl-0-a"] == 0, "the outdated one was deleted"


def test_strategy_change_rolls_nothing_next_template_rolls_all():
    sim = deployed("a:2/1")
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    change(sim)
    converge(sim)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate"}}})
    converge(sim)
    assert outdated(sim) == {"wl-0-a": 2}
    change(sim)
    converge(sim)
    assert not outdated(sim)


def test_clique_scaled_to_0_does_not_delay_update():
    sim = deployed("a:1 b:1 c:1", "x:1/1=c")
    sim.scale("PodClique", "wl-0-b", 0)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    converge(sim)
    change(sim, "b", "c")
    converge(sim)
    assert progress(sim)["updateEndedAt"]
    assert status(sim)["updatedReplicas"] == 1
    sim.scale("PodClique", "wl-0-b", 1)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    converge(sim)
    assert len(names(sim)) == 3
    assert not outdated(sim)


def test_paused_update_stops_and_resumes():
    sim = deployed("a:3/1", replicas=2)
    change(sim)
    run_operator(sim)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": True}}})
    converge(sim)
    assert outdated(sim) == {"wl-0-a": 2, "wl-1-a": 3}
    actors.delete(sim, sorted(sim.pods("wl-1-a"))[0])
    converge(sim)
    assert outdated(sim) == {"wl-0-a": 2, "wl-1-a": 2}
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": False}}})
    converge(sim)
    assert not outdated(sim)


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [
        ("PodCliqueSet", "wl", 3),
        ("PodCliqueSet", "wl", 1),
        ("PodClique", "wl-0-a", 4),
        ("PodClique", "wl-0-a", 1),
        ("PodClique", "wl-0-a", 0),
        ("PodCliqueScalingGroup", "wl-0-x", 4),
        ("PodCliqueScalingGroup", "wl-0-x", 1),
        ("PodCliqueScalingGroup", "wl-0-x", 0),
    ],
)
@pytest.mark.parametrize("passes", [0, 1, 2, 3, 5, 8, 13])
def test_update_completes_when_scaled_during_it(kind, name, count, passes):
    sim = deployed("a:2/1 b:1 c:1", "x:2/1=b,c", replicas=2)
    change(sim)
    for _ in range(passes):
        sim.reconcile_all()
        actors.finish_terminating(sim)
        actors.run_all(sim)
    sim.scale(kind, name, count)
    converge(sim)
    actors.finish_scale_in(sim, *range(sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"], 3))
    converge(sim)
    assert not outdated(sim)
    assert progress(sim)["updateEndedAt"]
    assert sim.api.get(kind, name)["spec"]["replicas"] == count, "scaled counts are kept"
    check_settled(sim)
    check_history(sim)
    assert (count < 2) or not twice_replaced(sim), "updated pods stay"


def twice_replaced(sim: Simulator) -> list[str]:
    """Pods of the latest template that the operator deleted again."""
    read_pods = [(write, read("Pod", write.before)) for write in sim.api.history if _takes_down(write)]
    hashes = {clique.name: clique.template_hash for clique in expand_now(sim).cliques}
    return [
        write.key[1]
        for write, pod in read_pods
        if pod.metadata.labels[labels.TEMPLATE_HASH] == hashes.get(clique_of(pod))
    ]


def _takes_down(write: Write) -> bool:
    return write.by == OPERATOR and write.verb == "delete" and write.key[0] == "Pod"


def rolling_updates(sim: Simulator, **pace: object) -> None:
    """The rollingUpdate of the cliques and groups of the set."""
    template = sim.api.get("PodCliqueSet", "wl")["spec"]["template"]
    grouped = {name for group in template.get("podCliqueScalingGroups", ()) for name in group["cliqueNames"]}
    for part in [*template["cliques"], *template.get("podCliqueScalingGroups", ())]:
        if part["name"] not in grouped:
            part["rollingUpdate"] = pace
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"template": template}})
    converge(sim)


def test_update_replaces_as_many_units_as_budget_allows():
    sim = deployed("a:5/2 b:1", "x:4/1=b")
    rolling_updates(sim, maxUnavailable=3)
    before = names(sim)
    change(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 2, "wl-0-x-3-b": 1}
    gone = before - names(sim)
    selected = progress(sim, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]
    assert {selected["current"], *selected["completed"]} == {name for name in gone if "-a-" in name}
    actors.finish_terminating(sim)
    actors.run(sim, *[name for name in names(sim) if name not in before and "-a-" in name][:1])
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 1, "wl-0-x-3-b": 1}, "one is ready again, one more is replaced"
    converge(sim)
    assert not outdated(sim)
    check_settled(sim)


def test_update_and_clique_scale_in_share_one_budget():
    sim = deployed("a:5/1")
    rolling_updates(sim, maxUnavailable=2)
    sim.scale("PodClique", "wl-0-a", 4)
    run_operator(sim)
    change(sim)
    run_operator(sim)
    assert outdated(sim) == {"wl-0-a": 3}, "one is terminating already"
    converge(sim)
    assert not outdated(sim)


def test_update_and_group_scale_in_share_one_budget():
    sim = deployed("b:1 c:2/1", "x:5/1=b,c")
    rolling_updates(sim, maxUnavailable=2)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    change(sim)
    run_operator(sim)
    assert len([name for name in outdated(sim) if name.endswith("-b")]) == 3, "one is terminating already"
    actors.finish_terminating(sim)
    run_operator(sim)
    assert len([name for name in outdated(sim) if name.endswith("-b")]) == 2, (
        "it is gone: another is replaced"
    )
    converge(sim)
    assert not outdated(sim)


def test_stuck_replica_delays_update_for_limited_time():
    sim = deployed("b:1", "x:3/1=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    change(sim)
    run_operator(sim)
    assert sum(outdated(sim).values()) == 2
    assert sim.plan().requeue_at == sim.now + 30
    sim.now += 30
    run_operator(sim)
    assert sum(outdated(sim).values()) == 1


def test_stalled_update_is_reported_until_it_progresses():
    sim = deployed("a:2/1")
    rolling_updates(sim, progressDeadline="1m")
    change(sim)
    run_operator(sim)
    actors.finish_terminating(sim)
    run_operator(sim)
    assert update_condition(sim) == ("True", "Progressing")
    assert sim.plan().requeue_at == sim.now + 60
    sim.now += 60
    run_operator(sim)
    assert (
        update_condition(sim)
        == update_condition(sim, "PodCliqueSet", "wl")
        == ("Unknown", "ProgressDeadlineExceeded")
    )
    actors.run_all(sim)
    run_operator(sim)
    assert update_condition(sim) == update_condition(sim, "PodCliqueSet", "wl") == ("True", "Progressing")
    converge(sim)
    assert update_condition(sim) == update_condition(sim, "PodCliqueSet", "wl") == ("False", "NoActiveUpdate")


def update_condition(sim: Simulator, kind: str = "PodClique", name: str = "wl-0-a") -> tuple[str, str]:
    facts = status(sim, kind, name)["conditions"]
    return next((fact["status"], fact["reason"]) for fact in facts if fact["type"] == "UpdateInProgress")
