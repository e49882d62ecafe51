"""Gang termination: what was below minAvailable for too long is restarted, once per breach, and not
forever.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.naming import annotations as keys
from grove.plan.members import pod_state
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import alive, check_history, check_settled, clique_of
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.simulator.updates import change, converge, names, run_operator, status

DELAY = 10.0


def deployed(cliques: str, groups: str = "", **kwargs) -> Simulator:
    sim = Simulator(a_set(cliques, groups, terminationDelay="10s", **kwargs))
    converge(sim)
    sim.now += 1000.0
    return sim


def lose(sim: Simulator, clique: str, count: int = 1) -> None:
    """Pods of a clique are deleted, and there is no room for their successors."""
    for name in [name for name, pod in sim.pods(clique).items() if pod_state.alive(pod)][:count]:
        actors.force_delete(sim, name)
    run_operator(sim, 3)
    actors.refuse(sim)


def wait(sim: Simulator, seconds: float = DELAY) -> None:
    sim.now += seconds
    run_operator(sim, 3)


def survivors(sim: Simulator, before: set[str], *parts: str) -> set[str]:
    """The pods of `before` that still exist, in cliques with these parts in their names."""
    left = {pod.metadata.name for pod in alive(sim)} & before
    cliques = {pod.metadata.name: clique_of(pod) for pod in alive(sim)}
    return {name for name in left if any(part in cliques[name] for part in parts)} if parts else left


def fact(sim: Simulator, kind: str, name: str, type_: str) -> str:
    facts = status(sim, kind, name).get("conditions", [])
    return next((known["status"] for known in facts if known["type"] == type_), "")


def test_gt1_clique_below_minimum_restarts_whole_replica():
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c", replicas=2)
    before = names(sim)
    lose(sim, "wl-0-a")
    wait(sim, DELAY - 1)
    assert len(survivors(sim, before)) == 19, "not yet"
    assert sim.plan().requeue_at == sim.now + 1
    wait(sim, 1)
    assert survivors(sim, before, "wl-0-") == set()
    assert len(survivors(sim, before, "wl-1-")) == 10, "other replicas are not affected"
    assert len([pod for pod in alive(sim) if clique_of(pod).startswith("wl-0-")]) == 10
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "MinAvailableBreached") == "True"
    converge(sim)
    check_settled(sim)
    check_history(sim)
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == ""


def test_gt2_group_below_minimum_restarts_whole_replica():
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    before = names(sim)
    lose(sim, "wl-0-x-0-c")
    wait(sim)
    assert survivors(sim, before) == set()
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == "True"
    converge(sim)
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == ""


def test_group_of_restarted_replica_reports_it_even_late():
    sim = deployed("a:1 b:1", "x:1/1=b")
    group = ("PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    run = Run(sim, sim.plan())
    while run.go_on():
        pass
    sim.now += 5.0
    actors.refuse(sim)
    run_operator(sim, 3)
    assert fact(sim, *group[:2], "MinAvailableBreached") == "True"
    assert fact(sim, *group) == "True"
    actors.schedule(sim, *sim.pods())
    actors.crash(sim, *sim.pods("wl-0-x-0-b"))
    run_operator(sim, 3)
    assert fact(sim, *group) == "True", "until it is over"
    converge(sim)
    assert fact(sim, *group) == ""
    sim.now += 1000.0
    lose(sim, "wl-0-x-0-b")
    run_operator(sim, 3)
    assert fact(sim, *group[:2], "MinAvailableBreached") == "True"
    assert fact(sim, *group) == "", "this breach did not lead to the restart"


def test_gt3_missing_pods_above_minimum_never_restart():
    sim = deployed("a:2/1 b:1 c:3/1", "x:2/1=b,c")
    before = names(sim)
    lose(sim, "wl-0-a")
    wait(sim, 1000.0)
    assert len(survivors(sim, before)) == 9
    lose(sim, "wl-0-a", 2)
    wait(sim)
    assert survivors(sim, before) == set()
    assert len(alive(sim)) == 10


def test_gt4_group_at_minimum_restarts_only_broken_replica():
    sim = deployed("a:2/1 b:1 c:3/1", "x:2/1=b,c")
    before = names(sim)
    lose(sim, "wl-0-x-0-c", 1)
    wait(sim, 100.0)
    assert len(survivors(sim, before)) == 9
    lose(sim, "wl-0-x-0-c", 3)
    wait(sim)
    actors.refuse(sim)
    assert survivors(sim, before, "-x-0-") == set()
    assert len(survivors(sim, before, "wl-0-a", "-x-1-")) == 6
    once = names(sim)
    wait(sim, 1000.0)
    assert names(sim) == once, "restarted once: its pods have had no nodes since"

    lose(sim, "wl-0-x-1-c", 3)
    wait(sim)
    assert survivors(sim, once) == set(), "the group is below its minimum: the whole replica restarts"
    converge(sim)
    check_settled(sim)
    check_history(sim)


def test_gt5_replica_in_scaled_gang_restarts_by_itself():
    sim = deployed("a:1 b:1 c:3/3", "x:2/1=b,c")
    before = names(sim)
    lose(sim, "wl-0-x-1-c")
    wait(sim)
    assert survivors(sim, before, "-x-1-") == set()
    assert len(survivors(sim, before)) == 5


def lost_all_nodes(sim: Simulator, passes: int = 4) -> dict[str, bool]:
    """Parts that lose their last scheduled pod in the next passes, and whether that emits no event."""
    found: dict[str, bool] = {}
    for _ in range(passes):
        for status_update in sim.plan().status_updates:
            before, after = (
                getattr(status, "scheduled_replicas", 0)
                for status in (status_update.current, status_update.desired)
            )
            if before and not after:
                found[status_update.target.name] = not status_update.events
        run_operator(sim, 1)
    return found


def test_lost_scheduling_after_own_restart_emits_no_event():
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    all_parts = {"wl-0-a", "wl-0-x", *(f"wl-0-x-{index}-{name}" for index in (0, 1) for name in "bc")}
    lose(sim, "wl-0-a")
    assert lost_all_nodes(sim) == {}, "one of two still exists"
    sim.now += DELAY
    assert lost_all_nodes(sim) == dict.fromkeys(all_parts, True), "the restart took them, and has an event"
    actors.refuse(sim)
    converge(sim)
    for name in sim.pods():
        actors.force_delete(sim, name)
    assert lost_all_nodes(sim) == dict.fromkeys(all_parts, False), "this time others deleted them"


def test_lost_scheduling_of_restarted_group_replica_is_silent():
    sim = deployed("a:1 b:1 c:3/3", "x:2/1=b,c")
    lose(sim, "wl-0-x-1-c")
    sim.now += DELAY
    assert lost_all_nodes(sim) == {"wl-0-x-1-b": True, "wl-0-x-1-c": True}
    schedule_all(sim)
    run_operator(sim)
    for name in sim.pods():
        actors.force_delete(sim, name)
    lost = lost_all_nodes(sim)
    assert set(lost) == {"wl-0-a", "wl-0-x", *(f"wl-0-x-{index}-{name}" for index in (0, 1) for name in "bc")}
    assert not any(lost.values()), "they were scheduled since, if only for a moment"


def test_first_pods_lost_early_emit_lost_scheduling():
    sim = Simulator(a_set("a:2/2"))
    sim.settle()
    first = next(iter(sim.pods()))
    actors.schedule(sim, first)
    run_operator(sim)
    actors.force_delete(sim, first)
    assert lost_all_nodes(sim) == {"wl-0-a": False}


def schedule_all(sim: Simulator) -> None:
    actors.schedule(sim, *sim.pods())


def test_one_restart_per_breach_however_long_it_lasts():
    sim = deployed("a:2/2")
    lose(sim, "wl-0-a")
    wait(sim)
    after = names(sim)
    for _ in range(5):
        actors.refuse(sim)
        wait(sim, 5000.0)
    assert names(sim) == after
    converge(sim)
    lose(sim, "wl-0-a")
    wait(sim)
    assert not names(sim) & after, "another breach is another termination"


def test_never_scheduled_clique_is_not_restarted():
    sim = Simulator(a_set("a:2/2 b:1", "x:1/1=b", terminationDelay="10s"))
    run_operator(sim, 4)
    before = names(sim)
    actors.run(sim, sorted(sim.pods("wl-0-a"))[0])
    for _ in range(3):
        actors.refuse(sim)
        wait(sim, 1000.0)
    assert names(sim) == before


def test_was_scheduled_is_kept_across_operator_restart():
    sim = deployed("a:2/2")
    before = names(sim)
    lose(sim, "wl-0-a", 2)
    sim.restart_operator()
    wait(sim)
    assert survivors(sim, before) == set()
    after = names(sim)
    actors.refuse(sim)
    sim.restart_operator()
    wait(sim, 1000.0)
    assert names(sim) == after


def test_never_ready_unit_restarts_with_back_off_then_stops():
    sim = deployed("a:1")
    gaps: list[float] = []
    while True:
        current = names(sim)
        actors.schedule(sim, *current)
        actors.crash(sim, *current)
        run_operator(sim, 2)
        due = sim.plan().requeue_at
        if due is None:
            break
        gaps.append(due - sim.now)
        sim.now = due
        run_operator(sim, 2)
        assert not names(sim) & current
        actors.finish_terminating(sim)
    assert gaps == [10, 20, 40, 80, 160]
    assert fact(sim, "PodGang", "wl-0", "Unhealthy") == "True"
    sim.api.patch("PodGang", "wl-0", {"metadata": {"annotations": {keys.TERMINATIONS: None}}})
    wait(sim, 20.0)
    assert names(sim) != current, "a user removed the annotation"


def test_recovered_unit_resets_restart_count():
    sim = deployed("a:1")
    for _ in range(8):
        before = names(sim)
        actors.crash(sim, *before)
        run_operator(sim, 2)
        wait(sim, 11.0)
        assert not names(sim) & before
        converge(sim)
        sim.now += 5.0
    assert fact(sim, "PodGang", "wl-0", "Unhealthy") == ""


def test_rollout_that_does_not_become_ready_is_no_breach():
    sim = deployed("a:2/2")
    change(sim)
    run_operator(sim)
    actors.finish_terminating(sim)
    actors.refuse(sim)
    before = names(sim)
    wait(sim, 10_000.0)
    assert names(sim) == before


def test_restart_keeps_scaled_counts():
    sim = deployed("a:1 b:1", "x:1/1=b")
    sim.scale("PodClique", "wl-0-a", 3)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    converge(sim)
    cliques = {body["metadata"]["uid"] for body in sim.api.objects("PodClique")}
    before = names(sim)
    sim.now += 100
    lose(sim, "wl-0-a", 3)
    wait(sim)
    converge(sim)
    assert not names(sim) & before
    assert len(sim.pods("wl-0-a")) == 3
    assert len(sim.pods("wl-0-x-1-b")) == 1
    assert {body["metadata"]["uid"] for body in sim.api.objects("PodClique")} == cliques


@pytest.mark.parametrize("done", range(12))
def test_crash_during_restart_is_completed_by_next_operator(done):
    sim = deployed("a:2/2 b:1", "x:2/1=b")
    before = names(sim)
    lose(sim, "wl-0-a")
    sim.now += DELAY
    run = Run(sim, sim.plan())
    for _ in range(done):
        run.go_on()
    sim.restart_operator()
    converge(sim)
    wait(sim, 0.0)
    assert len(survivors(sim, before)) in (0, 3), "all or nothing"
    if done >= 3:
        assert survivors(sim, before) == set()
    check_settled(sim)
    check_history(sim, lagging=True)


def test_scaled_gang_created_later_records_the_restart():
    sim = deployed("a:2/2 b:1", "x:1/1=b")
    lose(sim, "wl-0-a")
    wait(sim)
    converge(sim)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    run_operator(sim, 2)
    before = names(sim)
    converge(sim)
    assert names(sim) == before


def test_stale_breach_is_refused():
    sim = deployed("a:2/2")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    stale = sim.plan()
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    actors.run_all(sim)
    before = names(sim)
    assert not sim.execute(stale)
    assert names(sim) == before


def test_restart_event_is_emitted_once_with_its_write():
    sim = deployed("a:2/2 b:1", "x:2/1=b")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    plan = sim.plan()
    (event,) = (event for event in plan.events if event.regarding.kind == "PodCliqueSet")
    assert event.reason == "PodCliqueSetReplicaDeleteSuccessful"
    assert event.note == "wl-0 is restarted: wl-0-a was below minAvailable for 10 s"
    assert event.intent in [intent.id for intent in plan.intents]


def test_stuck_pod_is_replaced_and_force_deleted_on_request():
    sim = deployed("a:1")
    (stuck,) = names(sim)
    actors.delete(sim, stuck)
    run_operator(sim, 3)
    actors.run_all(sim)
    run_operator(sim, 3)
    sim.now += 100_000.0
    assert sim.plan().intents == ()
    assert stuck in sim.pods()
    assert status(sim)["availableReplicas"] == 1

    sim.now -= 100_000.0
    for word, expected in (("soon", None), ("5m", sim.now + 300)):
        sim.api.patch("PodCliqueSet", "wl", {"metadata": {"annotations": {keys.FORCE_DELETE_AFTER: word}}})
        assert (sim.plan().intents, sim.plan().requeue_at) == ((), expected)
    sim.now += 300
    (force_delete,) = sim.plan().intents
    assert (force_delete.target.name, force_delete.grace_seconds) == (stuck, 0)


def test_failed_termination_write_is_retried():
    """The status must not anticipate the termination: that the pods were scheduled is recorded nowhere
    else."""
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    before = names(sim)
    lose(sim, "wl-0-a")
    sim.now += DELAY
    for _ in range(3):
        sim.publish(sim.plan(), all_done=False)
    assert status(sim, "PodClique", "wl-0-x-0-c")["scheduledReplicas"] == 3, "they all still exist"
    run_operator(sim, 3)
    assert survivors(sim, before) == set()


def test_gang_learning_late_of_restart_causes_no_second_one():
    """The pods of a scaled gang are scheduled while the whole replica is already being restarted: that says
    nothing about their successors."""
    sim = deployed("a:1 b:1", "x:2/1=b")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    plan = sim.plan()
    base = [intent for intent in plan.intents if "wl-0-x-0" not in intent.id and "wl-0-x-1" not in intent.id]
    sim.execute(replace(plan, intents=tuple(base), status_updates=()))
    late = sim.plan()
    assert any("PodGang ns/wl-0-x-0" in intent.id for intent in late.intents), (
        "it has not recorded the restart yet"
    )
    sim.publish(late, all_done=False)
    run_operator(sim, 3)
    once = names(sim)
    wait(sim, 1000.0)
    assert names(sim) == once
