"""A leader of yesterday may be the last to write. What is observed is observed anew on every pass, so whoever
looks next sets it right; and what was decided is written on the version it was read from, or not at all."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.plan.api_server import Body, decode
from tests.plan.builders import a_set
from tests.plan.meddling import GENTLE, SCALING
from tests.plan.test_update_properties import CHANGES, a_life, come_to_rest
from tests.plan.updating import change, deployed, quiet
from tests.plan.world import World

OURS = ("PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "PodGang")


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if not key.endswith(("Time", "At"))}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def statuses(world: World) -> dict[tuple[str, str], Body]:
    """What all say of themselves, without the moments."""
    found = {(kind, name): world.api.get(kind, name) for kind in OURS for name in world.api.all(kind)}
    return {key: timeless(body.get("status", {})) for key, body in found.items()}


def former(world: World, kind: str, name: str) -> list[Body]:
    """Every status that the object has had."""
    uid = world.api.get(kind, name)["metadata"]["uid"]
    past = (decode(state[name]) for state in world.api.past[kind] if name in state)
    told = [body["status"] for body in past if body["metadata"]["uid"] == uid and "status" in body]
    return list({str(status): status for status in told}.values())


def write_back(world: World, kind: str, name: str, status: Body) -> None:
    """As if nothing had happened since. That there was an update at all, nobody can see from the pods."""
    current = world.api.get(kind, name)["status"]
    whole = {**dict.fromkeys(current), **status}
    if progress := status.get("updateProgress"):
        whole["updateProgress"] = {**dict.fromkeys(current.get("updateProgress", ())), **progress}
    else:
        whole.pop("updateProgress", None)
    world.api.patch(kind, name, {"status": whole}, status=True, by="an old leader")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_back_is_set_right(seed):
    shape = a_set("a:2/1 b:2/1 c:1", "x:2/1=b,c", replicas=2)
    world = a_life(shape, Random(seed), *GENTLE, *SCALING, *CHANGES, length=40)
    change(world)
    come_to_rest(world)
    right = statuses(world)
    for kind, name in right:
        for status in former(world, kind, name):
            after = world.copy()
            write_back(after, kind, name, status)
            quiet(after)
            assert statuses(after) == right, (kind, name, status)


def test_what_was_planned_before_an_update_is_not_told_after_it():
    world = deployed("a:2/1 b:2/1", "x:2/1=b", replicas=1)
    change(world)
    world.tend()
    late, of_set = world.plan(), world.plan_set()
    assert late.drafts or late.intents
    quiet(world)
    right = statuses(world)
    world.publish(late)
    world.publish(of_set)
    assert statuses(world) == right


def test_an_update_that_only_an_old_view_of_the_set_still_sees_is_not_told_for_ever():
    """The clique is as it is now; the set, and with it the template and whose turn it is, is not."""
    world = deployed("a:2/1", replicas=1)
    for _ in range(2):
        change(world)
        quiet(world)
    right = statuses(world)
    told = 0
    for lag in range(1, len(world.api.past["PodCliqueSet"])):
        late = world.copy()
        late.publish(late.plan(lag={"PodCliqueSet": lag}))
        told += statuses(late) != right
        quiet(late)
        assert statuses(late) == right
    assert told, "some of them do tell"
