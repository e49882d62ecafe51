"""Helpers for sets with changing templates."""

from __future__ import annotations

from collections import Counter

from grove.api.naming import labels
from grove.plan.desired.template_hash import template_hash
from tests.plan.builders import a_set, read_set
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.invariants import alive, clique_of
from tests.plan.simulator.simulator import Simulator

IMAGES = iter(range(2, 100_000))


def deployed(cliques: str, groups: str = "", **kwargs) -> Simulator:
    """A set with all pods ready and statuses published."""
    sim = Simulator(a_set(cliques, groups, **kwargs))
    converge(sim)
    return sim


def converge(sim: Simulator, passes: int = 100) -> None:
    """Reconciles until nothing is left to do, with healthy nodes."""
    for _ in range(passes):
        written = sim.reconcile_all()
        actors.finish_terminating(sim)
        actors.run_all(sim)
        if not written and not sim.reconcile_all():
            return
    raise AssertionError("still not converged")


def change(sim: Simulator, *names: str) -> None:
    """A new image for these cliques, or for all."""
    spec = sim.api.get("PodCliqueSet", "wl")["spec"]
    for clique in spec["template"]["cliques"]:
        if not names or clique["name"] in names:
            clique["spec"]["podSpec"]["containers"][0]["image"] = f"example.com/serve:{next(IMAGES)}"
    sim.api.patch("PodCliqueSet", "wl", {"spec": spec})


def run_operator(sim: Simulator, passes: int = 6) -> None:
    """Reconciles while nodes do nothing."""
    for _ in range(passes):
        sim.reconcile_all()


def outdated(sim: Simulator) -> Counter[str]:
    """Pods of an old template, by clique."""
    workload = read_set(sim.api.get("PodCliqueSet", "wl"))
    wanted = {clique.name: template_hash(clique, "") for clique in workload.spec.template.cliques}
    return Counter(
        clique_of(pod)
        for pod in alive(sim)
        if pod.metadata.labels[labels.TEMPLATE_HASH] != wanted[pod.metadata.labels[labels.CLIQUE_TEMPLATE]]
    )


def status(sim: Simulator, kind: str = "PodCliqueSet", name: str = "wl") -> Body:
    return sim.api.get(kind, name).get("status", {})


def progress(sim: Simulator, kind: str = "PodCliqueSet", name: str = "wl") -> Body:
    return status(sim, kind, name).get("updateProgress", {})


def updating_replicas(sim: Simulator) -> list[int]:
    return [entry["replicaIndex"] for entry in progress(sim).get("currentlyUpdating", ())]


def names(sim: Simulator) -> set[str]:
    return {pod.metadata.name for pod in alive(sim)}


def breached(sim: Simulator, kind: str, name: str) -> str:
    facts = status(sim, kind, name)["conditions"]
    return next(fact["status"] for fact in facts if fact["type"] == "MinAvailableBreached")
