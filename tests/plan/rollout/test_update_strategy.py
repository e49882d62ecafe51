"""Who sets the pace of an update: strategies, pauses, budgets, deadlines, and scaling in the middle of it."""

from __future__ import annotations

import pytest

from grove.api.naming import labels
from grove.plan.timestamps import rfc3339
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import Write
from tests.plan.simulator.invariants import check_history, check_settled, clique_of, expand_now
from tests.plan.simulator.simulator import OPERATOR, Simulator, read
from tests.plan.simulator.updates import change, deployed, names, outdated, progress, quiet, status, tend


def test_on_delete_deletes_nothing_and_recreates_updated():
    sim = deployed("a:2/1 b:1 c:2/1", "x:2/1=b,c")
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    quiet(sim)
    before = names(sim)
    sim.now += 50
    change(sim)
    quiet(sim)
    assert names(sim) == before
    told = progress(sim)
    assert told["updateStartedAt"] == told["updateEndedAt"] == rfc3339(sim.now)
    assert "currentlyUpdating" not in told
    assert told["updatedPodCliquesCount"] == 0
    for kind, name in (
        ("PodClique", "wl-0-a"),
        ("PodClique", "wl-0-x-1-c"),
        ("PodCliqueScalingGroup", "wl-0-x"),
    ):
        part = progress(sim, kind, name)
        assert part["updateStartedAt"] == part["updateEndedAt"] == rfc3339(sim.now)
    actors.delete(sim, sorted(sim.pods("wl-0-a"))[0])
    actors.delete(sim, sorted(sim.pods("wl-0-x-0-c"))[0])
    quiet(sim)
    assert outdated(sim) == {
        "wl-0-a": 1, "wl-0-x-0-b": 1, "wl-0-x-0-c": 1, "wl-0-x-1-b": 1, "wl-0-x-1-c": 2
    }  # fmt: skip
    assert status(sim, "PodClique", "wl-0-a")["updatedReplicas"] == 1
    sim.scale("PodClique", "wl-0-a", 1)
    quiet(sim)
    assert outdated(sim)["wl-0-a"] == 0, "the outdated one went"


def test_strategy_change_rolls_nothing_next_template_rolls_all():
    sim = deployed("a:2/1")
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    change(sim)
    quiet(sim)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate"}}})
    quiet(sim)
    assert outdated(sim) == {"wl-0-a": 2}
    change(sim)
    quiet(sim)
    assert not outdated(sim)


def test_clique_scaled_to_0_does_not_delay_update():
    sim = deployed("a:1 b:1 c:1", "x:1/1=c")
    sim.scale("PodClique", "wl-0-b", 0)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    quiet(sim)
    change(sim, "b", "c")
    quiet(sim)
    assert progress(sim)["updateEndedAt"]
    assert status(sim)["updatedReplicas"] == 1
    sim.scale("PodClique", "wl-0-b", 1)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    quiet(sim)
    assert len(names(sim)) == 3
    assert not outdated(sim)


def test_paused_update_stops_and_resumes():
    sim = deployed("a:3/1", replicas=2)
    change(sim)
    tend(sim)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": True}}})
    quiet(sim)
    assert outdated(sim) == {"wl-0-a": 2, "wl-1-a": 3}
    actors.delete(sim, sorted(sim.pods("wl-1-a"))[0])
    quiet(sim)
    assert outdated(sim) == {"wl-0-a": 2, "wl-1-a": 2}
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"updateStrategy": {"paused": False}}})
    quiet(sim)
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
        sim.tend()
        actors.finish_terminating(sim)
        actors.run_all(sim)
    sim.scale(kind, name, count)
    quiet(sim)
    actors.finish_scale_in(sim, *range(sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"], 3))
    quiet(sim)
    assert not outdated(sim)
    assert progress(sim)["updateEndedAt"]
    assert sim.api.get(kind, name)["spec"]["replicas"] == count, "counts belong to whoever scales"
    check_settled(sim)
    check_history(sim)
    assert (count < 2) or not twice_replaced(sim), "who is new stays"


def twice_replaced(sim: Simulator) -> list[str]:
    """Pods of the latest template that the operator took down again."""
    read_pods = [(write, read("Pod", write.before)) for write in sim.api.history if _takes_down(write)]
    hashes = {clique.name: clique.template_hash for clique in expand_now(sim).cliques}
    return [
        write.key[1]
        for write, pod in read_pods
        if pod.metadata.labels[labels.TEMPLATE_HASH] == hashes.get(clique_of(pod))
    ]


def _takes_down(write: Write) -> bool:
    return write.by == OPERATOR and write.verb == "delete" and write.key[0] == "Pod"


def paced(sim: Simulator, **pace: object) -> None:
    """How fast the cliques and groups of the set may be replaced."""
    template = sim.api.get("PodCliqueSet", "wl")["spec"]["template"]
    grouped = {name for group in template.get("podCliqueScalingGroups", ()) for name in group["cliqueNames"]}
    for part in [*template["cliques"], *template.get("podCliqueScalingGroups", ())]:
        if part["name"] not in grouped:
            part["rollingUpdate"] = pace
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"template": template}})
    quiet(sim)


def test_update_replaces_as_many_units_as_budget_allows():
    sim = deployed("a:5/2 b:1", "x:4/1=b")
    paced(sim, maxUnavailable=3)
    before = names(sim)
    change(sim)
    tend(sim)
    assert outdated(sim) == {"wl-0-a": 2, "wl-0-x-3-b": 1}
    gone = before - names(sim)
    selected = progress(sim, "PodClique", "wl-0-a")["readyPodsSelectedToUpdate"]
    assert {selected["current"], *selected["completed"]} == {name for name in gone if "-a-" in name}
    actors.finish_terminating(sim)
    actors.run(sim, *[name for name in names(sim) if name not in before and "-a-" in name][:1])
    tend(sim)
    assert outdated(sim) == {"wl-0-a": 1, "wl-0-x-3-b": 1}, "one is back, one more may go"
    quiet(sim)
    assert not outdated(sim)
    check_settled(sim)


def test_update_and_clique_scale_in_share_one_budget():
    sim = deployed("a:5/1")
    paced(sim, maxUnavailable=2)
    sim.scale("PodClique", "wl-0-a", 4)
    tend(sim)
    change(sim)
    tend(sim)
    assert outdated(sim) == {"wl-0-a": 3}, "one is on its way out already"
    quiet(sim)
    assert not outdated(sim)


def test_update_and_group_scale_in_share_one_budget():
    sim = deployed("b:1 c:2/1", "x:5/1=b,c")
    paced(sim, maxUnavailable=2)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    change(sim)
    tend(sim)
    assert len([name for name in outdated(sim) if name.endswith("-b")]) == 3, "one is on its way already"
    actors.finish_terminating(sim)
    tend(sim)
    assert len([name for name in outdated(sim) if name.endswith("-b")]) == 2, "it is gone: another may go"
    quiet(sim)
    assert not outdated(sim)


def test_stuck_replica_delays_update_for_limited_time():
    sim = deployed("b:1", "x:3/1=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    change(sim)
    tend(sim)
    assert sum(outdated(sim).values()) == 2
    assert sim.plan().requeue_at == sim.now + 30
    sim.now += 30
    tend(sim)
    assert sum(outdated(sim).values()) == 1


def test_stalled_update_is_reported_until_it_progresses():
    sim = deployed("a:2/1")
    paced(sim, progressDeadline="1m")
    change(sim)
    tend(sim)
    actors.finish_terminating(sim)
    tend(sim)
    assert told(sim) == ("True", "Progressing")
    assert sim.plan().requeue_at == sim.now + 60
    sim.now += 60
    tend(sim)
    assert told(sim) == told(sim, "PodCliqueSet", "wl") == ("Unknown", "ProgressDeadlineExceeded")
    actors.run_all(sim)
    tend(sim)
    assert told(sim) == told(sim, "PodCliqueSet", "wl") == ("True", "Progressing")
    quiet(sim)
    assert told(sim) == told(sim, "PodCliqueSet", "wl") == ("False", "NoActiveUpdate")


def told(sim: Simulator, kind: str = "PodClique", name: str = "wl-0-a") -> tuple[str, str]:
    facts = status(sim, kind, name)["conditions"]
    return next((fact["status"], fact["reason"]) for fact in facts if fact["type"] == "UpdateInProgress")
