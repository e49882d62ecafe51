"""Template changes with random events: one disruption at a time, and the last template wins."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.api.naming import annotations as keys
from tests.plan.convergence.test_properties import chances, quick
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.disruptions import check_disruptions
from tests.plan.simulator.invariants import check_history, check_settled, object_features
from tests.plan.simulator.random_changes import GENTLE, SCALING, RandomChanges, workloads
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.simulator.updates import change, converge, outdated, progress, status

slow = settings(quick, max_examples=25)
CALM = ("run", "run all", "finish", "wait")
FAULTS = ("crash", "crash", "crash", "wait", "wait", "force delete", "refuse", "lose node", "run all")
CHANGES = (
    "new template",
    "new template",
    "new template",
    "run all",
    "finish",
    "strategy",
    "pause",
    "restart",
)


class Changer(RandomChanges):
    """Changes templates of some cliques, and the update strategy."""

    def _new_template(self) -> None:
        spec = self.sim.api.get("PodCliqueSet", self.sim.set_name)["spec"]
        names = [clique["name"] for clique in spec["template"]["cliques"]]
        change(self.sim, *self.chance.sample(names, self.chance.randint(1, len(names))))

    def _restart(self) -> None:
        """Restarts a part of the set, or what is none."""
        where, part = (
            self.chance.choice(("all", "0", "1")),
            self.chance.choice(("", ".a", ".b", ".x", ".x.1")),
        )
        annotations = {f"{keys.RESTART_PREFIX}{where}{part}": str(self.sim.api.version)}
        self.sim.api.patch("PodCliqueSet", self.sim.set_name, {"metadata": {"annotations": annotations}})

    def _strategy(self) -> None:
        rolling = self.chance.random() < 0.8
        self._update_strategy(type="RollingRecreate" if rolling else "OnDelete")

    def _pause(self) -> None:
        self._update_strategy(paused=self.chance.random() < 0.2)

    def _update_strategy(self, **strategy: object) -> None:
        self.sim.api.patch("PodCliqueSet", self.sim.set_name, {"spec": {"updateStrategy": strategy}})

    def _crash(self) -> None:
        """All pods of a clique that have a node crash."""
        if clique := self._any("PodClique"):
            found = self.sim.pods(clique)
            actors.crash(self.sim, *[name for name, pod in found.items() if pod.spec.node_name])

    def _refuse(self) -> None:
        actors.refuse(self.sim)

    def _lose_node(self) -> None:
        """Some pods are not ready any more; they are deleted, and no kubelet confirms it."""
        for name, pod in sorted(self.sim.pods().items()):
            if pod.spec.node_name and self.chance.random() < 0.4:
                actors.make_unready(self.sim, name)
                actors.delete(self.sim, name)

    def _scale_set(self) -> None:
        self.sim.scale("PodCliqueSet", self.sim.set_name, self.chance.randrange(4))


@st.composite
def several(draw: st.DrawFn) -> Body:
    """Some of their cliques and groups have maxUnavailable above 1."""
    body = draw(workloads())
    body["spec"]["replicas"] = draw(st.integers(1, 3))
    template = body["spec"]["template"]
    for part in (*template["cliques"], *template.get("podCliqueScalingGroups", ())):
        if draw(st.booleans()):
            part["rollingUpdate"] = {"maxUnavailable": draw(st.integers(1, 3))}
    return body


def tend_in_part(sim: Simulator, chance: Random) -> None:
    """A reconcile of one replica that stops after any write, followed by a new operator."""
    index = chance.randrange(3)
    if index >= sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"]:
        return
    plan = sim.plan(index)
    run = Run(sim, plan, chance)
    for _ in range(chance.randrange(len(plan.intents) + 1)):
        run.go_on()
    sim.restart_operator()


def random_history(body: Body, chance: Random, *kinds: str, length: int = 60) -> Simulator:
    sim = Simulator(body)
    converge(sim)
    changer = Changer(sim, chance)
    for _ in range(chance.randrange(length)):
        dice = chance.random()
        if dice < 0.5:
            sim.reconcile_all()
        elif dice < 0.6:
            tend_in_part(sim, chance)
        else:
            changer.apply_random(*kinds)
    return sim


def settle_all(sim: Simulator) -> None:
    """Reconciles with a rolling strategy and healthy nodes until nothing is left to do."""
    sim.api.patch(
        "PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate", "paused": False}}}
    )
    for _ in range(4):
        actors.collect_garbage(sim)
        actors.finish_terminating(sim)
        sim.now += 1000.0
        for index in range(4):
            sim.settle(index)
        converge(sim)


def fresh_deployment(sim: Simulator) -> Simulator:
    """The same set and counts, deployed without any history."""
    body = sim.api.get("PodCliqueSet", "wl")
    fresh = Simulator({key: body[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": a_name(body)})
    converge(fresh)
    for kind in ("PodCliqueScalingGroup", "PodClique"):
        for name in fresh.api.all(kind):
            fresh.scale(kind, name, sim.api.get(kind, name)["spec"]["replicas"])
        converge(fresh)
    return fresh


def a_name(body: Body) -> Body:
    """With its annotations, which request restarts."""
    kept = ("name", "namespace", "annotations")
    return {key: value for key, value in body["metadata"].items() if key in kept}


@slow
@given(body=several(), chance=chances)
def test_one_disruption_at_a_time(body, chance):
    sim = random_history(body, chance, *GENTLE, *SCALING, *CHANGES, "lose node")
    check_disruptions(sim)
    check_history(sim, lagging=True)


@slow
@given(body=several(), chance=chances)
def test_random_rollouts_end_like_a_new_deployment(body, chance):
    sim = random_history(body, chance, *GENTLE, *SCALING, *CHANGES, "lose node", "crash")
    sim.api.patch(
        "PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate", "paused": False}}}
    )
    change(sim)
    settle_all(sim)
    replicas = sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    assert not outdated(sim)
    assert progress(sim)["updateEndedAt"]
    reported = status(sim)
    assert (reported["updatedReplicas"], reported["availableReplicas"]) == (replicas, replicas)
    check_settled(sim)
    check_history(sim, lagging=True)
    check_disruptions(sim)
    assert not any(sim.plan(index).intents for index in range(replicas))
    assert object_features(sim) == object_features(fresh_deployment(sim))


@slow
@given(body=several(), chance=chances)
def test_stale_caches_start_no_second_disruption(body, chance):
    """A plan is made from older states, each kind with a lag of its own."""
    sim = random_history(body, chance, *CALM, *CHANGES)
    for _ in range(6):
        lag = {kind: chance.randrange(6) for kind in ("PodCliqueSet", "PodClique", "PodGang")}
        index = chance.randrange(max(1, sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"]))
        sim.execute(replace(sim.plan(index, lag), status_updates=()))
        sim.reconcile_all()
        Changer(sim, chance).apply_random(*CALM, *CHANGES)
    check_disruptions(sim)


@slow
@given(body=several(), chance=chances)
def test_rollouts_with_restarts_converge(body, chance):
    """With gang terminations in between; units that were never ready may have exhausted their restarts."""
    body["spec"]["template"]["terminationDelay"] = "20s"
    sim = random_history(body, chance, *FAULTS, *FAULTS, *SCALING, *CHANGES)
    settle_all(sim)
    check_settled(sim)
    check_history(sim, lagging=True)
    replicas = sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    assert status(sim)["availableReplicas"] == replicas
    assert not any(sim.plan(index).intents for index in range(replicas))
    if not outdated(sim):  # a paused or OnDelete update is not started by a change to rolling
        assert object_features(sim) == object_features(fresh_deployment(sim))
