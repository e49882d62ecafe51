"""Stale statuses: a former leader may be the last to write. Observations are computed again on every pass, so
the next one corrects them; decisions are written on the version that they were read from, or not at all.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.plan.builders import a_set
from tests.plan.rollout.test_properties import CHANGES, random_history, settle_all
from tests.plan.simulator.api_server import Body, decode
from tests.plan.simulator.random_changes import GENTLE, SCALING
from tests.plan.simulator.simulator import Simulator
from tests.plan.simulator.updates import change, converge, deployed

OURS = ("PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "PodGang")


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if not key.endswith(("Time", "At"))}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def statuses(sim: Simulator) -> dict[tuple[str, str], Body]:
    """All statuses, without timestamps."""
    found = {(kind, name): sim.api.get(kind, name) for kind in OURS for name in sim.api.all(kind)}
    return {key: timeless(body.get("status", {})) for key, body in found.items()}


def former(sim: Simulator, kind: str, name: str) -> list[Body]:
    """Every status that the object has had."""
    uid = sim.api.get(kind, name)["metadata"]["uid"]
    past = (decode(state[name]) for state in sim.api.past[kind] if name in state)
    reported = [body["status"] for body in past if body["metadata"]["uid"] == uid and "status" in body]
    return list({str(status): status for status in reported}.values())


def write_back(sim: Simulator, kind: str, name: str, status: Body) -> None:
    """Writes an earlier status. That there was an update at all cannot be seen from the pods."""
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
            converge(after)
            assert statuses(after) == right, (kind, name, status)


def test_status_planned_before_update_not_published_after_it():
    sim = deployed("a:2/1 b:2/1", "x:2/1=b", replicas=1)
    change(sim)
    sim.reconcile_all()
    late, of_set = sim.plan(), sim.plan_set()
    assert late.status_updates or late.intents
    converge(sim)
    right = statuses(sim)
    sim.publish(late)
    sim.publish(of_set)
    assert statuses(sim) == right


def test_ended_update_seen_by_stale_set_is_not_kept_published():
    """The clique is current; the set, with its template and the replica that is updated, is stale."""
    sim = deployed("a:2/1", replicas=1)
    for _ in range(2):
        change(sim)
        converge(sim)
    right = statuses(sim)
    reported = 0
    for lag in range(1, len(sim.api.past["PodCliqueSet"])):
        late = sim.copy()
        late.publish(late.plan(lag={"PodCliqueSet": lag}))
        reported += statuses(late) != right
        converge(late)
        assert statuses(late) == right
    assert reported, "some stale plans change the status"
