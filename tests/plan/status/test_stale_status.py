"""A leader of yesterday may be the last to write. What is observed is observed anew on every pass, so whoever
looks next sets it right; and what was decided is written on the version it was read from, or not at all."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.plan.builders import a_set
from tests.plan.rollout.test_properties import CHANGES, random_history, settle_all
from tests.plan.simulator.api_server import Body, decode
from tests.plan.simulator.random_changes import GENTLE, SCALING
from tests.plan.simulator.simulator import Simulator
from tests.plan.simulator.updates import change, deployed, quiet

OURS = ("PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "PodGang")


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if not key.endswith(("Time", "At"))}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def statuses(sim: Simulator) -> dict[tuple[str, str], Body]:
    """What all say of themselves, without the moments."""
    found = {(kind, name): sim.api.get(kind, name) for kind in OURS for name in sim.api.all(kind)}
    return {key: timeless(body.get("status", {})) for key, body in found.items()}


def former(sim: Simulator, kind: str, name: str) -> list[Body]:
    """Every status that the object has had."""
    uid = sim.api.get(kind, name)["metadata"]["uid"]
    past = (decode(state[name]) for state in sim.api.past[kind] if name in state)
    told = [body["status"] for body in past if body["metadata"]["uid"] == uid and "status" in body]
    return list({str(status): status for status in told}.values())


def write_back(sim: Simulator, kind: str, name: str, status: Body) -> None:
    """As if nothing had happened since. That there was an update at all, nobody can see from the pods."""
    current = sim.api.get(kind, name)["status"]
    whole = {**dict.fromkeys(current), **status}
    if progress := status.get("updateProgress"):
        whole["updateProgress"] = {**dict.fromkeys(current.get("updateProgress", ())), **progress}
    else:
        whole.pop("updateProgress", None)
    sim.api.patch(kind, name, {"status": whole}, status=True, by="an old leader")


@pytest.mark.parametrize("seed", range(4))
def test_stale_status_write_is_corrected(seed):
    layout = a_set("a:2/1 b:2/1 c:1", "x:2/1=b,c", replicas=2)
    sim = random_history(layout, Random(seed), *GENTLE, *SCALING, *CHANGES, length=40)
    change(sim)
    settle_all(sim)
    right = statuses(sim)
    for kind, name in right:
        for status in former(sim, kind, name):
            after = sim.copy()
            write_back(after, kind, name, status)
            quiet(after)
            assert statuses(after) == right, (kind, name, status)


def test_status_planned_before_update_not_published_after_it():
    sim = deployed("a:2/1 b:2/1", "x:2/1=b", replicas=1)
    change(sim)
    sim.tend()
    late, of_set = sim.plan(), sim.plan_set()
    assert late.status_updates or late.intents
    quiet(sim)
    right = statuses(sim)
    sim.publish(late)
    sim.publish(of_set)
    assert statuses(sim) == right


def test_ended_update_seen_by_stale_set_is_not_kept_published():
    """The clique is as it is now; the set, and with it the template and whose turn it is, is not."""
    sim = deployed("a:2/1", replicas=1)
    for _ in range(2):
        change(sim)
        quiet(sim)
    right = statuses(sim)
    told = 0
    for lag in range(1, len(sim.api.past["PodCliqueSet"])):
        late = sim.copy()
        late.publish(late.plan(lag={"PodCliqueSet": lag}))
        told += statuses(late) != right
        quiet(late)
        assert statuses(late) == right
    assert told, "some of them do tell"
