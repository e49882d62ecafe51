"""Whatever happens while templates change: one disturbance at a time, and the last template wins."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.plan import hands
from tests.plan.api_server import Body
from tests.plan.disturbance import check_disturbances
from tests.plan.invariants import check_history, check_settled, portrait
from tests.plan.meddling import GENTLE, SCALING, Meddler, workloads
from tests.plan.test_properties import chances, quick
from tests.plan.updating import change, outdated, progress, quiet, status
from tests.plan.world import Run, World

lives = settings(quick, max_examples=25)
CALM = ("run", "run all", "finish", "wait")
TROUBLE = ("crash", "crash", "crash", "wait", "wait", "force delete", "refuse", "lose node", "run all")
CHANGES = ("new template", "new template", "new template", "run all", "finish", "strategy", "pause")


class Changer(Meddler):
    """Changes templates of some cliques, and how they reach the pods."""

    def _new_template(self) -> None:
        spec = self.world.api.get("PodCliqueSet", self.world.set_name)["spec"]
        names = [clique["name"] for clique in spec["template"]["cliques"]]
        change(self.world, *self.chance.sample(names, self.chance.randint(1, len(names))))

    def _strategy(self) -> None:
        rolling = self.chance.random() < 0.8
        self._update_strategy(type="RollingRecreate" if rolling else "OnDelete")

    def _pause(self) -> None:
        self._update_strategy(paused=self.chance.random() < 0.2)

    def _update_strategy(self, **strategy: object) -> None:
        self.world.api.patch("PodCliqueSet", self.world.set_name, {"spec": {"updateStrategy": strategy}})

    def _crash(self) -> None:
        """All pods of a clique that have a node."""
        if clique := self._any("PodClique"):
            found = self.world.pods(clique)
            hands.crash(self.world, *[name for name, pod in found.items() if pod.spec.node_name])

    def _refuse(self) -> None:
        hands.refuse(self.world)

    def _lose_node(self) -> None:
        """Some pods do not answer any more; they are deleted, and nobody is there to end them."""
        for name, pod in sorted(self.world.pods().items()):
            if pod.spec.node_name and self.chance.random() < 0.4:
                hands.ail(self.world, name)
                hands.delete(self.world, name)

    def _scale_set(self) -> None:
        self.world.scale("PodCliqueSet", self.world.set_name, self.chance.randrange(4))


@st.composite
def several(draw: st.DrawFn) -> Body:
    """Some of their cliques and groups may lack more than one unit at a time."""
    body = draw(workloads())
    body["spec"]["replicas"] = draw(st.integers(1, 3))
    template = body["spec"]["template"]
    for part in (*template["cliques"], *template.get("podCliqueScalingGroups", ())):
        if draw(st.booleans()):
            part["rollingUpdate"] = {"maxUnavailable": draw(st.integers(1, 3))}
    return body


def tend_in_part(world: World, chance: Random) -> None:
    """A pass over one replica that ends after any write, and another operator begins."""
    index = chance.randrange(3)
    if index >= world.api.get("PodCliqueSet", "wl")["spec"]["replicas"]:
        return
    plan = world.plan(index)
    run = Run(world, plan, chance)
    for _ in range(chance.randrange(len(plan.intents) + 1)):
        run.go_on()
    world.restart_operator()


def a_life(body: Body, chance: Random, *kinds: str, length: int = 60) -> World:
    world = World(body)
    quiet(world)
    changer = Changer(world, chance)
    for _ in range(chance.randrange(length)):
        dice = chance.random()
        if dice < 0.5:
            world.tend()
        elif dice < 0.6:
            tend_in_part(world, chance)
        else:
            changer.meddle(*kinds)
    return world


def come_to_rest(world: World) -> None:
    """Rolling, and with nodes that do what they are told, until nothing is left to do."""
    world.api.patch(
        "PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate", "paused": False}}}
    )
    for _ in range(4):
        hands.collect_garbage(world)
        hands.finish_terminating(world)
        world.now += 1000.0
        for index in range(4):
            world.settle(index)
        quiet(world)


def fresh_deployment(world: World) -> World:
    """The same set, and the same counts, in a world where nothing else has ever happened."""
    body = world.api.get("PodCliqueSet", "wl")
    fresh = World({key: body[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": a_name(body)})
    quiet(fresh)
    for kind in ("PodCliqueScalingGroup", "PodClique"):
        for name in fresh.api.all(kind):
            fresh.scale(kind, name, world.api.get(kind, name)["spec"]["replicas"])
        quiet(fresh)
    return fresh


def a_name(body: Body) -> Body:
    return {key: body["metadata"][key] for key in ("name", "namespace")}


@lives
@given(body=several(), chance=chances)
def test_one_disturbance_at_a_time(body, chance):
    world = a_life(body, chance, *GENTLE, *SCALING, *CHANGES, "lose node")
    check_disturbances(world)
    check_history(world, lagging=True)


@lives
@given(body=several(), chance=chances)
def test_in_the_end_all_is_as_if_it_had_been_deployed_so(body, chance):
    world = a_life(body, chance, *GENTLE, *SCALING, *CHANGES, "lose node", "crash")
    world.api.patch(
        "PodCliqueSet", "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate", "paused": False}}}
    )
    change(world)
    come_to_rest(world)
    replicas = world.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    assert not outdated(world)
    assert progress(world)["updateEndedAt"]
    told = status(world)
    assert (told["updatedReplicas"], told["availableReplicas"]) == (replicas, replicas)
    check_settled(world)
    check_history(world, lagging=True)
    check_disturbances(world)
    assert not any(world.plan(index).intents for index in range(replicas))
    assert portrait(world) == portrait(fresh_deployment(world))


@lives
@given(body=several(), chance=chances)
def test_with_an_old_view_of_anything_no_second_disturbance_is_begun(body, chance):
    """A plan is made from older states, each kind as old as it likes."""
    world = a_life(body, chance, *CALM, *CHANGES)
    for _ in range(6):
        lag = {kind: chance.randrange(6) for kind in ("PodCliqueSet", "PodClique", "PodGang")}
        index = chance.randrange(max(1, world.api.get("PodCliqueSet", "wl")["spec"]["replicas"]))
        world.carry_out(replace(world.plan(index, lag), drafts=()))
        world.tend()
        Changer(world, chance).meddle(*CALM, *CHANGES)
    check_disturbances(world)


@lives
@given(body=several(), chance=chances)
def test_whatever_is_started_anew_comes_to_the_same_end(body, chance):
    """Terminations in the middle of everything else; what was never ready may be left as it is."""
    body["spec"]["template"]["terminationDelay"] = "20s"
    world = a_life(body, chance, *TROUBLE, *TROUBLE, *SCALING, *CHANGES)
    come_to_rest(world)
    check_settled(world)
    check_history(world, lagging=True)
    replicas = world.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    assert status(world)["availableReplicas"] == replicas
    assert not any(world.plan(index).intents for index in range(replicas))
    if not outdated(world):  # an update that was paused, or on delete, is not begun by rolling again
        assert portrait(world) == portrait(fresh_deployment(world))
