"""The objects that a command reads, from a simulator on which plans were executed."""

from __future__ import annotations

from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.views.set_view import SetObjects, SetView, set_views
from tests.plan.builders import Body, a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator, read

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def found(sim: Simulator) -> SetObjects:
    def all_(kind: type) -> tuple:
        return tuple(read(kind.__name__, stored) for stored in sim.api.all(kind.__name__).values())

    return SetObjects(*map(all_, (PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, Pod)))


def view(sim: Simulator) -> SetView:
    (seen,) = set_views(found(sim), NOW)
    return seen


def a_simulator(*, running: bool = True) -> Simulator:
    """A clique of three, two of them needed, and a group of two replicas; one of each is a scaled gang."""
    sim = Simulator(a_set("router:3/2 leader:1", "model:2/1=leader", name="demo"))
    sim.settle()
    if running:
        for _ in range(2):  # the scaled gang follows the base gang
            actors.run_all(sim)
            sim.settle()
        set_status(sim, {"availableReplicas": 1})
    return sim


def set_status(sim: Simulator, status: Body) -> None:
    """The status of the set, which the simulator of this test does not plan."""
    sim.api.patch("PodCliqueSet", sim.set_name, {"status": status}, status=True)
