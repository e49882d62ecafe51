"""Gang termination: what was short of pods for too long is started anew, once, and not for ever."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api import annotations as keys
from grove.plan import pods as state
from tests.plan import hands
from tests.plan.builders import a_set
from tests.plan.invariants import alive, check_history, check_settled, clique_of
from tests.plan.updating import change, names, quiet, status, tend
from tests.plan.world import Run, World

DELAY = 10.0


def deployed(cliques: str, groups: str = "", **kwargs) -> World:
    world = World(a_set(cliques, groups, terminationDelay="10s", **kwargs))
    quiet(world)
    world.now += 1000.0
    return world


def lose(world: World, clique: str, count: int = 1) -> None:
    """Pods of a clique are gone, and there is no room for their successors."""
    for name in [name for name, pod in world.pods(clique).items() if state.alive(pod)][:count]:
        hands.force_delete(world, name)
    tend(world, 3)
    hands.refuse(world)


def wait(world: World, seconds: float = DELAY) -> None:
    world.now += seconds
    tend(world, 3)


def survivors(world: World, before: set[str], *parts: str) -> set[str]:
    """Those of before that are still there, in cliques with these parts in their names."""
    left = {pod.metadata.name for pod in alive(world)} & before
    cliques = {pod.metadata.name: clique_of(pod) for pod in alive(world)}
    return {name for name in left if any(part in cliques[name] for part in parts)} if parts else left


def fact(world: World, kind: str, name: str, type_: str) -> str:
    facts = status(world, kind, name).get("conditions", [])
    return next((known["status"] for known in facts if known["type"] == type_), "")


def test_gt1_a_clique_below_its_minimum_takes_the_whole_replica_with_it():
    world = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c", replicas=2)
    before = names(world)
    lose(world, "wl-0-a")
    wait(world, DELAY - 1)
    assert len(survivors(world, before)) == 19, "not yet"
    assert world.plan().wake_at == world.now + 1
    wait(world, 1)
    assert survivors(world, before, "wl-0-") == set()
    assert len(survivors(world, before, "wl-1-")) == 10, "other replicas are nobody's business"
    assert len([pod for pod in alive(world) if clique_of(pod).startswith("wl-0-")]) == 10
    assert fact(world, "PodCliqueScalingGroup", "wl-0-x", "MinAvailableBreached") == "True"
    quiet(world)
    check_settled(world)
    check_history(world)
    assert fact(world, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == ""


def test_gt2_a_group_below_its_minimum_takes_the_whole_replica_with_it():
    world = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    before = names(world)
    lose(world, "wl-0-x-0-c")
    wait(world)
    assert survivors(world, before) == set()
    assert fact(world, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == "True"
    quiet(world)
    assert fact(world, "PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress") == ""


def test_a_group_that_goes_with_its_replica_says_so_however_late_that_is_seen():
    world = deployed("a:1 b:1", "x:1/1=b")
    group = ("PodCliqueScalingGroup", "wl-0-x", "GangTerminationInProgress")
    lose(world, "wl-0-a")
    world.now += DELAY
    run = Run(world, world.plan())
    while run.go_on():
        pass
    world.now += 5.0
    hands.refuse(world)
    tend(world, 3)
    assert fact(world, *group[:2], "MinAvailableBreached") == "True"
    assert fact(world, *group) == "True"
    hands.schedule(world, *world.pods())
    hands.crash(world, *world.pods("wl-0-x-0-b"))
    tend(world, 3)
    assert fact(world, *group) == "True", "until it is over"
    quiet(world)
    assert fact(world, *group) == ""
    world.now += 1000.0
    lose(world, "wl-0-x-0-b")
    tend(world, 3)
    assert fact(world, *group[:2], "MinAvailableBreached") == "True"
    assert fact(world, *group) == "", "this one is another story"


def test_gt3_what_is_above_the_minimum_may_be_missing_for_ever():
    world = deployed("a:2/1 b:1 c:3/1", "x:2/1=b,c")
    before = names(world)
    lose(world, "wl-0-a")
    wait(world, 1000.0)
    assert len(survivors(world, before)) == 9
    lose(world, "wl-0-a", 2)
    wait(world)
    assert survivors(world, before) == set()
    assert len(alive(world)) == 10


def test_gt4_a_group_that_keeps_its_minimum_loses_its_broken_replica_only():
    world = deployed("a:2/1 b:1 c:3/1", "x:2/1=b,c")
    before = names(world)
    lose(world, "wl-0-x-0-c", 1)
    wait(world, 100.0)
    assert len(survivors(world, before)) == 9
    lose(world, "wl-0-x-0-c", 3)
    wait(world)
    hands.refuse(world)
    assert survivors(world, before, "-x-0-") == set()
    assert len(survivors(world, before, "wl-0-a", "-x-1-")) == 6
    once = names(world)
    wait(world, 1000.0)
    assert names(world) == once, "once is enough: its pods have had no nodes since"

    lose(world, "wl-0-x-1-c", 3)
    wait(world)
    assert survivors(world, once) == set(), "none of the group is left: the whole replica goes"
    quiet(world)
    check_settled(world)
    check_history(world)


def test_gt5_a_replica_in_a_gang_of_its_own_is_started_anew_by_itself():
    world = deployed("a:1 b:1 c:3/3", "x:2/1=b,c")
    before = names(world)
    lose(world, "wl-0-x-1-c")
    wait(world)
    assert survivors(world, before, "-x-1-") == set()
    assert len(survivors(world, before)) == 5


def downfalls(world: World, passes: int = 4) -> dict[str, bool]:
    """Parts that lose the last of their places in the next passes, and whether it is our doing."""
    found: dict[str, bool] = {}
    for _ in range(passes):
        for draft in world.plan().drafts:
            before, after = (
                getattr(status, "scheduled_replicas", 0) for status in (draft.current, draft.desired)
            )
            if before and not after:
                found[draft.target.name] = draft.taken_down
        tend(world, 1)
    return found


def test_whose_doing_it_is_that_all_places_are_lost():
    world = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    everybody = {"wl-0-a", "wl-0-x", *(f"wl-0-x-{index}-{name}" for index in (0, 1) for name in "bc")}
    lose(world, "wl-0-a")
    assert downfalls(world) == {}, "one of two is still there"
    world.now += DELAY
    assert downfalls(world) == dict.fromkeys(everybody, True), "we took them, and that is told"
    hands.refuse(world)
    quiet(world)
    for name in world.pods():
        hands.force_delete(world, name)
    assert downfalls(world) == dict.fromkeys(everybody, False), "this time it was not us"


def test_whose_doing_it_is_where_one_replica_of_a_group_is_started_anew():
    world = deployed("a:1 b:1 c:3/3", "x:2/1=b,c")
    lose(world, "wl-0-x-1-c")
    world.now += DELAY
    assert downfalls(world) == {"wl-0-x-1-b": True, "wl-0-x-1-c": True}
    schedule_all(world)
    tend(world)
    for name in world.pods():
        hands.force_delete(world, name)
    lost = downfalls(world)
    assert set(lost) == {"wl-0-a", "wl-0-x", *(f"wl-0-x-{index}-{name}" for index in (0, 1) for name in "bc")}
    assert not any(lost.values()), "they had their nodes, if only for a moment"


def test_who_lost_its_first_places_before_it_had_enough_was_not_taken_down():
    world = World(a_set("a:2/2"))
    world.settle()
    first = next(iter(world.pods()))
    hands.schedule(world, first)
    tend(world)
    hands.force_delete(world, first)
    assert downfalls(world) == {"wl-0-a": False}


def schedule_all(world: World) -> None:
    hands.schedule(world, *world.pods())


def test_one_termination_for_a_breach_however_long_it_lasts():
    world = deployed("a:2/2")
    lose(world, "wl-0-a")
    wait(world)
    after = names(world)
    for _ in range(5):
        hands.refuse(world)
        wait(world, 5000.0)
    assert names(world) == after
    quiet(world)
    lose(world, "wl-0-a")
    wait(world)
    assert not names(world) & after, "another breach is another termination"


def test_who_never_had_its_nodes_is_left_to_wait_for_them():
    world = World(a_set("a:2/2 b:1", "x:1/1=b", terminationDelay="10s"))
    tend(world, 4)
    before = names(world)
    hands.run(world, sorted(world.pods("wl-0-a"))[0])
    for _ in range(3):
        hands.refuse(world)
        wait(world, 1000.0)
    assert names(world) == before


def test_that_it_had_its_nodes_is_remembered_by_the_next_operator():
    world = deployed("a:2/2")
    before = names(world)
    lose(world, "wl-0-a", 2)
    world.restart_operator()
    wait(world)
    assert survivors(world, before) == set()
    after = names(world)
    hands.refuse(world)
    world.restart_operator()
    wait(world, 1000.0)
    assert names(world) == after


def test_what_starts_and_never_answers_is_started_anew_ever_later_and_then_no_more():
    world = deployed("a:1")
    gaps: list[float] = []
    while True:
        current = names(world)
        hands.schedule(world, *current)
        hands.crash(world, *current)
        tend(world, 2)
        due = world.plan().wake_at
        if due is None:
            break
        gaps.append(due - world.now)
        world.now = due
        tend(world, 2)
        assert not names(world) & current
        hands.finish_terminating(world)
    assert gaps == [10, 20, 40, 80, 160]
    assert fact(world, "PodGang", "wl-0", "Unhealthy") == "True"
    world.api.patch("PodGang", "wl-0", {"metadata": {"annotations": {keys.TERMINATIONS: None}}})
    wait(world, 20.0)
    assert names(world) != current, "somebody has looked at it, and said so"


def test_once_it_has_been_ready_it_is_counted_anew():
    world = deployed("a:1")
    for _ in range(8):
        before = names(world)
        hands.crash(world, *before)
        tend(world, 2)
        wait(world, 11.0)
        assert not names(world) & before
        quiet(world)
        world.now += 5.0
    assert fact(world, "PodGang", "wl-0", "Unhealthy") == ""


def test_an_update_that_does_not_come_up_is_no_breach():
    world = deployed("a:2/2")
    change(world)
    tend(world)
    hands.finish_terminating(world)
    hands.refuse(world)
    before = names(world)
    wait(world, 10_000.0)
    assert names(world) == before


def test_counts_survive():
    world = deployed("a:1 b:1", "x:1/1=b")
    world.scale("PodClique", "wl-0-a", 3)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    quiet(world)
    cliques = {body["metadata"]["uid"] for body in world.api.objects("PodClique")}
    before = names(world)
    world.now += 100
    lose(world, "wl-0-a", 3)
    wait(world)
    quiet(world)
    assert not names(world) & before
    assert len(world.pods("wl-0-a")) == 3
    assert len(world.pods("wl-0-x-1-b")) == 1
    assert {body["metadata"]["uid"] for body in world.api.objects("PodClique")} == cliques


@pytest.mark.parametrize("done", range(12))
def test_whoever_ends_in_the_middle_leaves_what_the_next_one_finishes(done):
    world = deployed("a:2/2 b:1", "x:2/1=b")
    before = names(world)
    lose(world, "wl-0-a")
    world.now += DELAY
    run = Run(world, world.plan())
    for _ in range(done):
        run.go_on()
    world.restart_operator()
    quiet(world)
    wait(world, 0.0)
    assert len(survivors(world, before)) in (0, 3), "all or nothing"
    if done >= 3:
        assert survivors(world, before) == set()
    check_settled(world)
    check_history(world, lagging=True)


def test_a_scaled_gang_that_is_made_later_knows_of_it():
    world = deployed("a:2/2 b:1", "x:1/1=b")
    lose(world, "wl-0-a")
    wait(world)
    quiet(world)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    tend(world, 2)
    before = names(world)
    quiet(world)
    assert names(world) == before


def test_who_believes_in_a_breach_that_is_over_is_stopped():
    world = deployed("a:2/2")
    lose(world, "wl-0-a")
    world.now += DELAY
    stale = world.plan()
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    hands.run_all(world)
    before = names(world)
    assert not world.carry_out(stale)
    assert names(world) == before


def test_it_is_told_once_with_the_write_that_makes_it_true():
    world = deployed("a:2/2 b:1", "x:2/1=b")
    lose(world, "wl-0-a")
    world.now += DELAY
    plan = world.plan()
    (news,) = plan.news
    assert news.reason == "PodCliqueSetReplicaDeleteSuccessful"
    assert news.note == "wl-0 is started anew: wl-0-a was short of pods for 10 s"
    assert news.intent in [intent.id for intent in plan.intents]


def test_a_pod_that_does_not_go_is_replaced_and_forgotten_only_if_the_user_says_so():
    world = deployed("a:1")
    (ghost,) = names(world)
    hands.delete(world, ghost)
    tend(world, 3)
    hands.run_all(world)
    tend(world, 3)
    world.now += 100_000.0
    assert world.plan().intents == ()
    assert ghost in world.pods()
    assert status(world)["availableReplicas"] == 1

    world.now -= 100_000.0
    for word, expected in (("soon", None), ("5m", world.now + 300)):
        world.api.patch("PodCliqueSet", "wl", {"metadata": {"annotations": {keys.FORCE_DELETE_AFTER: word}}})
        assert (world.plan().intents, world.plan().wake_at) == ((), expected)
    world.now += 300
    (forget,) = world.plan().intents
    assert (forget.target.name, forget.grace_seconds) == (ghost, 0)


def test_a_termination_that_could_not_be_written_is_tried_again():
    """What it would have changed is not told: that the pods had their nodes is known from nowhere else."""
    world = deployed("a:2/2 b:1 c:3/3", "x:2/2=b,c")
    before = names(world)
    lose(world, "wl-0-a")
    world.now += DELAY
    for _ in range(3):
        world.publish(world.plan(), all_done=False)
    assert status(world, "PodClique", "wl-0-x-0-c")["scheduledReplicas"] == 3, "they are all still there"
    tend(world, 3)
    assert survivors(world, before) == set()


def test_a_gang_that_learns_late_of_a_termination_does_not_bring_about_another():
    """Its pods of before have their nodes while the whole replica has been started anew already: that they
    had them says nothing of those that come after them."""
    world = deployed("a:1 b:1", "x:2/1=b")
    lose(world, "wl-0-a")
    world.now += DELAY
    plan = world.plan()
    base = [intent for intent in plan.intents if "wl-0-x-0" not in intent.id and "wl-0-x-1" not in intent.id]
    world.carry_out(replace(plan, intents=tuple(base), drafts=()))
    late = world.plan()
    assert any("PodGang ns/wl-0-x-0" in intent.id for intent in late.intents), "it does not know yet"
    world.publish(late, all_done=False)
    tend(world, 3)
    once = names(world)
    wait(world, 1000.0)
    assert names(world) == once
