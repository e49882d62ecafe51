"""Gang termination: what was short of pods for too long is started anew, once, and not for ever."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.naming import annotations as keys
from grove.plan.members import pod_state
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import alive, check_history, check_settled, clique_of
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.simulator.updates import change, names, quiet, status, tend

DELAY = 10.0


def deployed(cliques: str, groups: str = "", **kwargs) -> Simulator:
    sim = Simulator(a_set(cliques, groups, terminationDelay="10s", **kwargs))
    quiet(sim)
    sim.now += 1000.0
    return sim


def lose(sim: Simulator, clique: str, count: int = 1) -> None:
    """Pods of a clique are gone, and there is no room for their successors."""
    for name in [name for name, pod in sim.pods(clique).items() if pod_state.alive(pod)][:count]:
        actors.force_delete(sim, name)
    tend(sim, 3)
    actors.refuse(sim)


def wait(sim: Simulator, seconds: float = DELAY) -> None:
    sim.now += seconds
    tend(sim, 3)


def survivors(sim: Simulator, before: set[str], *parts: str) -> set[str]:
    """Those of before that are still there, in cliques with these parts in their names."""
    left = {pod.metadata.name for pod in alive(sim)} & before
    cliques = {pod.metadata.name: clique_of(pod) for pod in alive(sim)}
    return {name for name in left if any(part in cliques[name] for part in parts)} if parts else left


def fact(sim: Simulator, kind: str, name: str, type_: str) -> str:
    facts = status(sim, kind, name).get("conditions", [])
    return next((known["status"] for known in facts if known["type"] == type_), "")


def test_gt1_a_clique_below_its_minimum_takes_the_whole_replica_with_it():
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c", replicas=2)
    before = names(sim)
    lose(sim, "wl-0-a")
    wait(sim, DELAY - 1)
    assert len(survivors(sim, before)) == 19, "not yet"
    assert sim.plan().requeue_at == sim.now + 1
    wait(sim, 1)
    assert survivors(sim, before, "wl-0-") == set()
    assert len(survivors(sim, before, "wl-1-")) == 10, "other replicas are nobody's business"
    assert len([pod for pod in alive(sim) if clique_of(pod).startswith("wl-0-")]) == 10
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "MinAvailableBreached") == "True"
    quiet(sim)
    check_settled(sim)
    check_history(sim)
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == ""


def test_gt2_a_group_below_its_minimum_takes_the_whole_replica_with_it():
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    before = names(sim)
    lose(sim, "wl-0-x-0-c")
    wait(sim)
    assert survivors(sim, before) == set()
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == "True"
    quiet(sim)
    assert fact(sim, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == ""


def test_a_group_that_goes_with_its_replica_says_so_however_late_that_is_seen():
    sim = deployed("a:1 b:1", "x:1/1=b")
    group = ("PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    run = Run(sim, sim.plan())
    while run.go_on():
        pass
    sim.now += 5.0
    actors.refuse(sim)
    tend(sim, 3)
    assert fact(sim, *group[:2], "MinAvailableBreached") == "True"
    assert fact(sim, *group) == "True"
    actors.schedule(sim, *sim.pods())
    actors.crash(sim, *sim.pods("wl-0-x-0-b"))
    tend(sim, 3)
    assert fact(sim, *group) == "True", "until it is over"
    quiet(sim)
    assert fact(sim, *group) == ""
    sim.now += 1000.0
    lose(sim, "wl-0-x-0-b")
    tend(sim, 3)
    assert fact(sim, *group[:2], "MinAvailableBreached") == "True"
    assert fact(sim, *group) == "", "this one is another story"


def test_gt3_what_is_above_the_minimum_may_be_missing_for_ever():
    sim = deployed("a:2/1 b:1 c:3/1", "x:2/1=b,c")
    before = names(sim)
    lose(sim, "wl-0-a")
    wait(sim, 1000.0)
    assert len(survivors(sim, before)) == 9
    lose(sim, "wl-0-a", 2)
    wait(sim)
    assert survivors(sim, before) == set()
    assert len(alive(sim)) == 10


def test_gt4_a_group_that_keeps_its_minimum_loses_its_broken_replica_only():
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
    assert names(sim) == once, "once is enough: its pods have had no nodes since"

    lose(sim, "wl-0-x-1-c", 3)
    wait(sim)
    assert survivors(sim, once) == set(), "none of the group is left: the whole replica goes"
    quiet(sim)
    check_settled(sim)
    check_history(sim)


def test_gt5_a_replica_in_a_gang_of_its_own_is_started_anew_by_itself():
    sim = deployed("a:1 b:1 c:3/3", "x:2/1=b,c")
    before = names(sim)
    lose(sim, "wl-0-x-1-c")
    wait(sim)
    assert survivors(sim, before, "-x-1-") == set()
    assert len(survivors(sim, before)) == 5


def downfalls(sim: Simulator, passes: int = 4) -> dict[str, bool]:
    """Parts that lose the last of their places in the next passes, and whether it is our doing."""
    found: dict[str, bool] = {}
    for _ in range(passes):
        for status_update in sim.plan().status_updates:
            before, after = (
                getattr(status, "scheduled_replicas", 0)
                for status in (status_update.current, status_update.desired)
            )
            if before and not after:
                found[status_update.target.name] = status_update.restart_pending
        tend(sim, 1)
    return found


def test_whose_doing_it_is_that_all_places_are_lost():
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    everybody = {"wl-0-a", "wl-0-x", *(f"wl-0-x-{index}-{name}" for index in (0, 1) for name in "bc")}
    lose(sim, "wl-0-a")
    assert downfalls(sim) == {}, "one of two is still there"
    sim.now += DELAY
    assert downfalls(sim) == dict.fromkeys(everybody, True), "we took them, and that is told"
    actors.refuse(sim)
    quiet(sim)
    for name in sim.pods():
        actors.force_delete(sim, name)
    assert downfalls(sim) == dict.fromkeys(everybody, False), "this time it was not us"


def test_whose_doing_it_is_where_one_replica_of_a_group_is_started_anew():
    sim = deployed("a:1 b:1 c:3/3", "x:2/1=b,c")
    lose(sim, "wl-0-x-1-c")
    sim.now += DELAY
    assert downfalls(sim) == {"wl-0-x-1-b": True, "wl-0-x-1-c": True}
    schedule_all(sim)
    tend(sim)
    for name in sim.pods():
        actors.force_delete(sim, name)
    lost = downfalls(sim)
    assert set(lost) == {"wl-0-a", "wl-0-x", *(f"wl-0-x-{index}-{name}" for index in (0, 1) for name in "bc")}
    assert not any(lost.values()), "they had their nodes, if only for a moment"


def test_who_lost_its_first_places_before_it_had_enough_was_not_taken_down():
    sim = Simulator(a_set("a:2/2"))
    sim.settle()
    first = next(iter(sim.pods()))
    actors.schedule(sim, first)
    tend(sim)
    actors.force_delete(sim, first)
    assert downfalls(sim) == {"wl-0-a": False}


def schedule_all(sim: Simulator) -> None:
    actors.schedule(sim, *sim.pods())


def test_one_termination_for_a_breach_however_long_it_lasts():
    sim = deployed("a:2/2")
    lose(sim, "wl-0-a")
    wait(sim)
    after = names(sim)
    for _ in range(5):
        actors.refuse(sim)
        wait(sim, 5000.0)
    assert names(sim) == after
    quiet(sim)
    lose(sim, "wl-0-a")
    wait(sim)
    assert not names(sim) & after, "another breach is another termination"


def test_who_never_had_its_nodes_is_left_to_wait_for_them():
    sim = Simulator(a_set("a:2/2 b:1", "x:1/1=b", terminationDelay="10s"))
    tend(sim, 4)
    before = names(sim)
    actors.run(sim, sorted(sim.pods("wl-0-a"))[0])
    for _ in range(3):
        actors.refuse(sim)
        wait(sim, 1000.0)
    assert names(sim) == before


def test_that_it_had_its_nodes_is_remembered_by_the_next_operator():
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


def test_what_starts_and_never_answers_is_started_anew_ever_later_and_then_no_more():
    sim = deployed("a:1")
    gaps: list[float] = []
    while True:
        current = names(sim)
        actors.schedule(sim, *current)
        actors.crash(sim, *current)
        tend(sim, 2)
        due = sim.plan().requeue_at
        if due is None:
            break
        gaps.append(due - sim.now)
        sim.now = due
        tend(sim, 2)
        assert not names(sim) & current
        actors.finish_terminating(sim)
    assert gaps == [10, 20, 40, 80, 160]
    assert fact(sim, "PodGang", "wl-0", "Unhealthy") == "True"
    sim.api.patch("PodGang", "wl-0", {"metadata": {"annotations": {keys.TERMINATIONS: None}}})
    wait(sim, 20.0)
    assert names(sim) != current, "somebody has looked at it, and said so"


def test_once_it_has_been_ready_it_is_counted_anew():
    sim = deployed("a:1")
    for _ in range(8):
        before = names(sim)
        actors.crash(sim, *before)
        tend(sim, 2)
        wait(sim, 11.0)
        assert not names(sim) & before
        quiet(sim)
        sim.now += 5.0
    assert fact(sim, "PodGang", "wl-0", "Unhealthy") == ""


def test_an_update_that_does_not_come_up_is_no_breach():
    sim = deployed("a:2/2")
    change(sim)
    tend(sim)
    actors.finish_terminating(sim)
    actors.refuse(sim)
    before = names(sim)
    wait(sim, 10_000.0)
    assert names(sim) == before


def test_counts_survive():
    sim = deployed("a:1 b:1", "x:1/1=b")
    sim.scale("PodClique", "wl-0-a", 3)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    quiet(sim)
    cliques = {body["metadata"]["uid"] for body in sim.api.objects("PodClique")}
    before = names(sim)
    sim.now += 100
    lose(sim, "wl-0-a", 3)
    wait(sim)
    quiet(sim)
    assert not names(sim) & before
    assert len(sim.pods("wl-0-a")) == 3
    assert len(sim.pods("wl-0-x-1-b")) == 1
    assert {body["metadata"]["uid"] for body in sim.api.objects("PodClique")} == cliques


@pytest.mark.parametrize("done", range(12))
def test_whoever_ends_in_the_middle_leaves_what_the_next_one_finishes(done):
    sim = deployed("a:2/2 b:1", "x:2/1=b")
    before = names(sim)
    lose(sim, "wl-0-a")
    sim.now += DELAY
    run = Run(sim, sim.plan())
    for _ in range(done):
        run.go_on()
    sim.restart_operator()
    quiet(sim)
    wait(sim, 0.0)
    assert len(survivors(sim, before)) in (0, 3), "all or nothing"
    if done >= 3:
        assert survivors(sim, before) == set()
    check_settled(sim)
    check_history(sim, lagging=True)


def test_a_scaled_gang_that_is_made_later_knows_of_it():
    sim = deployed("a:2/2 b:1", "x:1/1=b")
    lose(sim, "wl-0-a")
    wait(sim)
    quiet(sim)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    tend(sim, 2)
    before = names(sim)
    quiet(sim)
    assert names(sim) == before


def test_who_believes_in_a_breach_that_is_over_is_stopped():
    sim = deployed("a:2/2")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    stale = sim.plan()
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    actors.run_all(sim)
    before = names(sim)
    assert not sim.execute(stale)
    assert names(sim) == before


def test_it_is_told_once_with_the_write_that_makes_it_true():
    sim = deployed("a:2/2 b:1", "x:2/1=b")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    plan = sim.plan()
    (event,) = plan.events
    assert event.reason == "PodCliqueSetReplicaDeleteSuccessful"
    assert event.note == "wl-0 is started anew: wl-0-a was short of pods for 10 s"
    assert event.intent in [intent.id for intent in plan.intents]


def test_a_pod_that_does_not_go_is_replaced_and_forgotten_only_if_the_user_says_so():
    sim = deployed("a:1")
    (ghost,) = names(sim)
    actors.delete(sim, ghost)
    tend(sim, 3)
    actors.run_all(sim)
    tend(sim, 3)
    sim.now += 100_000.0
    assert sim.plan().intents == ()
    assert ghost in sim.pods()
    assert status(sim)["availableReplicas"] == 1

    sim.now -= 100_000.0
    for word, expected in (("soon", None), ("5m", sim.now + 300)):
        sim.api.patch("PodCliqueSet", "wl", {"metadata": {"annotations": {keys.FORCE_DELETE_AFTER: word}}})
        assert (sim.plan().intents, sim.plan().requeue_at) == ((), expected)
    sim.now += 300
    (forget,) = sim.plan().intents
    assert (forget.target.name, forget.grace_seconds) == (ghost, 0)


def test_a_termination_that_could_not_be_written_is_tried_again():
    """What it would have changed is not told: that the pods had their nodes is known from nowhere else."""
    sim = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    before = names(sim)
    lose(sim, "wl-0-a")
    sim.now += DELAY
    for _ in range(3):
        sim.publish(sim.plan(), all_done=False)
    assert status(sim, "PodClique", "wl-0-x-0-c")["scheduledReplicas"] == 3, "they are all still there"
    tend(sim, 3)
    assert survivors(sim, before) == set()


def test_a_gang_that_learns_late_of_a_termination_does_not_bring_about_another():
    """Its pods of before have their nodes while the whole replica has been started anew already: that they
    had them says nothing of those that come after them."""
    sim = deployed("a:1 b:1", "x:2/1=b")
    lose(sim, "wl-0-a")
    sim.now += DELAY
    plan = sim.plan()
    base = [intent for intent in plan.intents if "wl-0-x-0" not in intent.id and "wl-0-x-1" not in intent.id]
    sim.execute(replace(plan, intents=tuple(base), status_updates=()))
    late = sim.plan()
    assert any("PodGang ns/wl-0-x-0" in intent.id for intent in late.intents), "it does not know yet"
    sim.publish(late, all_done=False)
    tend(sim, 3)
    once = names(sim)
    wait(sim, 1000.0)
    assert names(sim) == once
