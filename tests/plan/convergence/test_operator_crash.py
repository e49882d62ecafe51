"""An operator that stops after its n-th write, for every n: the next one converges to the same state with the
same writes.

The scenarios that are sampled on a real API server are complete here: each is played once without a stop, and
then once for every write that it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from grove.api.naming import labels
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import decode
from tests.plan.simulator.invariants import check_history, check_settled, outline
from tests.plan.simulator.random_changes import SHARED, share_claims
from tests.plan.simulator.simulator import OPERATOR, Run, Simulator

Act = Callable[[Simulator], object]


def scaled(kind: str, name: str, replicas: int) -> Act:
    return lambda sim: sim.scale(kind, name, replicas)


def edited(kind: str, name: str, body: dict) -> Act:
    return lambda sim: sim.api.patch(kind, name, body)


def lost(kind: str, name: str) -> Act:
    return lambda sim: sim.api.delete(kind, name)


def to_a_pod(write: Callable[[Simulator, str], object], clique: str) -> Act:
    return lambda sim: write(sim, min(sim.pods(clique)))


def nothing(sim: Simulator) -> None: ...


SCENARIOS: dict[str, tuple[Act, ...]] = {
    "a group": (
        scaled("PodCliqueScalingGroup", "wl-0-x", 3),
        scaled("PodCliqueScalingGroup", "wl-0-x", 1),
        scaled("PodCliqueScalingGroup", "wl-0-x", 0),
        scaled("PodCliqueScalingGroup", "wl-0-x", 2),
    ),
    "a clique": (
        scaled("PodClique", "wl-0-a", 4),
        scaled("PodClique", "wl-0-a", 1),
        scaled("PodClique", "wl-0-a", 0),
        scaled("PodClique", "wl-0-a", 2),
    ),
    "a set": (scaled("PodCliqueSet", "wl", 0), scaled("PodCliqueSet", "wl", 1)),
    "pods": (
        to_a_pod(actors.delete, "wl-0-a"),
        to_a_pod(actors.fail, "wl-0-x-0-b"),
        to_a_pod(actors.force_delete, "wl-0-x-1-b"),
    ),
    "parts": (
        lost("PodGang", "wl-0"),
        lost("Service", "wl-0"),
        edited("PodClique", "wl-0-a", {"spec": {"roleName": "other"}, "metadata": {"labels": {"x": "y"}}}),
        edited("PodGang", "wl-0-x-0", {"spec": {"podgroups": []}}),
        lost("PodClique", "wl-0-x-1-b"),
        lost("PodCliqueScalingGroup", "wl-0-x"),
    ),
    "claims": (
        lost("ResourceClaim", "wl-0-a-1-clique-per"),
        lost("ResourceClaim", "wl-0-x-all-group-all"),
        edited("ResourceClaim", "wl-0-set-per", {"metadata": {"ownerReferences": None}}),
        lost("ResourceClaim", "wl-0-x-1-b-all-clique-all"),
    ),
}


CLAIMS_OF: dict[str, set[tuple[str, str]]] = {"pods": set(), "parts": {("clique", "PerReplica")}}
"""Scenarios with fewer shared claims than possible: every write is a stop, and every stop a run."""


class ScenarioRun:
    """Plays a scenario; the operator stops once, after so many writes."""

    def __init__(self, scenario: str, stop_after: int | None = None) -> None:
        body = a_set("a:2/1 b:1", "x:2/1=b")
        share_claims(body, CLAIMS_OF.get(scenario, {*SHARED}))
        self.sim = Simulator(body)
        self.writes = 0
        self._stop_after = stop_after
        self._acts = SCENARIOS[scenario]

    def play(self) -> None:
        for act in (nothing, *self._acts):
            act(self.sim)
            for _ in range(3):
                self._operate()
                actors.run_all(self.sim)
                actors.collect_garbage(self.sim)
                actors.finish_terminating(self.sim)
            self._operate()

    def _operate(self) -> None:
        """Reconciles until there is nothing to do, or nothing before others act."""
        for _ in range(8):
            self.sim.share()
            plan = self.sim.plan()
            run = Run(self.sim, plan)
            while run.go_on():
                self.writes += 1
                if self.writes == self._stop_after:
                    self.sim.restart_operator()
                    break
            else:
                if not self.sim.publish(plan, run.succeeded) and not plan.intents:
                    return


def writes(sim: Simulator, verb: str) -> Counter[str]:
    """What the operator created or deleted; pods by their clique, because their names are random."""
    found: Counter[str] = Counter()
    for write in sim.api.history:
        if write.by == OPERATOR and write.verb == verb:
            kind, name = write.key
            body = decode(write.after or write.before or b"")
            found[f"{kind} {body['metadata']['labels'][labels.CLIQUE] if kind == 'Pod' else name}"] += 1
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_crash_after_any_write_gives_same_result_and_writes(scenario: str) -> None:
    measure = ScenarioRun(scenario)
    measure.play()
    check_settled(measure.sim)
    for stop_after in range(1, measure.writes + 1):
        run = ScenarioRun(scenario, stop_after)
        run.play()
        played = f"stopped after write {stop_after} of {measure.writes}"
        assert outline(run.sim) == outline(measure.sim), played
        assert writes(run.sim, "create") == writes(measure.sim, "create"), played
        assert writes(run.sim, "delete") <= writes(measure.sim, "delete"), played
        check_settled(run.sim)
        check_history(run.sim, lagging=True)  # a new operator has not observed the deletions before
