"""Gangs that the operator places: nominated and released on a nearly full cluster, waiting while another gang
has the nodes, and placed when that is deleted."""

from __future__ import annotations

from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.naming import labels
from grove.kube.client.resource import PODS
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS, gated
from tests.cluster.operator.support.workloads import Body, clique, workload

PLACING = backends(
    Scheduler((SchedulerProfile("default-scheduler", {"placement": "All", "visibleAfter": "Never"}),))
)


def whole_nodes(name: str, pods: int) -> Body:
    """A gang of pods that need a node each; the cluster has 16."""
    resources: dict[str, Any] = {"limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "main", "image": "model:1", "resources": resources}
    return workload(name, clique("worker", pods, pod={"containers": [container]}))


def bound(world: World, name: str) -> int:
    return sum(bool(pod.spec.get("nodeName")) for pod in world.pods(part_of=name))


async def nominated_waiting_placed(world: World) -> None:
    await world.create(SETS, whole_nodes("first", 12))
    await world.checkpoint("first gang", when=lambda: bound(world, "first") == 12, compared=False)
    await world.create(SETS, whole_nodes("second", 6))
    await world.checkpoint(
        "second gang waits",
        when=lambda: len(world.pods(part_of="second")) == 6 and all(map(gated, world.pods(part_of="second"))),
        compared=False,
    )
    assert bound(world, "second") == 0
    await world.stop_comparing_deletes()
    await world.delete(SETS, "first")
    await world.checkpoint(
        "second gang placed",
        when=lambda: bound(world, "second") == 6 and not world.all(PODS, part_of="first"),
        compared=False,
    )
    assert {pod.labels[labels.GANG] for pod in world.pods()} == {"second-0"}


nominated_waiting_placed.options = {"backends": PLACING}  # type: ignore[attr-defined]

SCENARIOS = {"nominated, waiting, placed": nominated_waiting_placed}
