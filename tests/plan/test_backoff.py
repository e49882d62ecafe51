"""Pods that end are replaced: the first at once, its successors later and later."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api import annotations
from grove.plan.backoff import replacement_due
from tests.plan import hands
from tests.plan.builders import a_set
from tests.plan.world import World


def failing(times: int, lived: float = 1.0) -> World:
    """A clique of one pod that has failed so many times, each time as soon as it could."""
    world = World(a_set("a:1"))
    world.settle()
    for number in range(times):
        if number:
            world.now = world.plan().wake_at or world.now
            world.step()
        world.now += lived
        hands.fail(world, last(world))
    return world


def last(world: World) -> str:
    (name,) = world.references("wl-0")["wl-0-a"]
    return name


@pytest.mark.parametrize("written", ["9" * 5000, "9" * 12, "999999", "-1", "1e9"])
def test_edited_failure_counts_cost_no_time_and_no_memory(written):
    world = failing(1)
    pod = world.pods()[last(world)]
    edited = replace(pod.metadata, annotations={annotations.FAILURES: written})
    due, _ = replacement_due(replace(pod, metadata=edited))
    assert due - world.now <= 300


@pytest.mark.parametrize(
    ("times", "delay"), [(1, 0), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300)]
)
def test_the_delay_doubles_up_to_five_minutes(times, delay):
    world = failing(times)
    due, failures = replacement_due(world.pods()[last(world)])
    assert (due - world.now, failures) == (delay, times)


def test_until_then_the_pod_keeps_its_seat_and_the_plan_says_when_to_look_again():
    world = failing(2)
    plan = world.plan()
    assert plan.intents == ()
    assert plan.wake_at == world.now + 10
    world.now = plan.wake_at
    assert [intent.id.split()[0] for intent in world.step().intents] == ["patch", "delete", "create"]


def test_the_count_travels_with_the_pods():
    world = failing(3)
    assert world.pods()[last(world)].metadata.annotations[annotations.FAILURES] == "2"


def test_a_pod_that_lived_long_starts_the_count_anew():
    world = failing(3, lived=601.0)
    assert replacement_due(world.pods()[last(world)]) == (world.now, 1)


def test_a_count_that_somebody_spoilt_is_none():
    world = failing(2)
    name = last(world)
    world.api.patch("Pod", name, {"metadata": {"annotations": {annotations.FAILURES: "many"}}})
    assert replacement_due(world.pods()[name])[1] == 1


def test_the_count_survives_a_plan_that_got_no_further_than_naming_the_successor():
    world = failing(2)
    world.now = world.plan().wake_at
    gang, death, birth = world.plan().intents
    assert death.id in birth.after, "the pod that ended is deleted before its successor is created"
    world.api.patch("PodGang", "wl-0", gang.body)
    again = next(intent for intent in world.plan().intents if intent.id.startswith("create"))
    assert again.id == birth.id
    assert again.body["metadata"]["annotations"][annotations.FAILURES] == "2"
