"""Gates: pods of a scaled gang wait until the base gang has its places, and not a moment longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grove.api.naming import labels, well_known
from grove.kube.client.client import JSON
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GANGS, GROUPS, SETS, AnyObject, gated
from tests.cluster.operator.support.workloads import Body, small, upstream


class Room:
    """A label that no node has yet: who selects it has nowhere to go. It is the same in every telling, for
    templates are told apart by a hash of all that they say."""

    key = "room.test/here"

    def __init__(self, world: World, nodes: list[str]) -> None:
        self._world, self.nodes = world, nodes

    async def mark(self, node: str, value: str | None = "yes") -> None:
        body = {"metadata": {"labels": {self.key: value}}}
        await self._world.client.patch(NODES, node, body, as_type=Object)

    def workload(self) -> Body:
        """Its first clique needs room."""
        body = upstream("workload2")
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {self.key: "yes"}
        return body


@asynccontextmanager
async def room(world: World) -> AsyncIterator[Room]:
    """No node keeps the label."""
    listed = await world.client.list(NODES, as_type=Object)
    made = Room(world, sorted(node.metadata.name for node in listed.items))
    try:
        yield made
    finally:
        for node in made.nodes[:2]:
            await made.mark(node, None)


def scheduled(pod: AnyObject) -> bool:
    return bool(pod.spec.get("nodeName"))


def scaled(world: World) -> list[AnyObject]:
    return [pod for pod in world.pods() if labels.BASE_GANG in pod.labels]


def base_first(world: World) -> None:
    """No pod of a scaled gang may be let go while a clique of the base gang is short of places. In which
    order they go in the end is nobody's business."""
    base, workload = world.find(GANGS, "workload2-0"), world.find(SETS, "workload2")
    if base is None or workload is None or workload.terminating or all(map(gated, scaled(world))):
        return
    for group in base.spec["podgroups"]:
        placed = [pod for pod in world.all(PODS, clique=group["name"]) if scheduled(pod)]
        assert len(placed) >= group["minReplicas"], f"{group['name']} has no places yet\n{world.dump()}"


async def a_scaled_gang_waits_for_the_base_gang(world: World) -> None:
    async with room(world) as places:
        world.always(lambda: base_first(world))
        await world.create(SETS, places.workload())
        await world.rest(
            "waiting",
            when=lambda: (
                sum(map(scheduled, world.pods())) == 4
                and len(world.pods()) == 10
                and len(world.all(GANGS)) == 2
                and all(gang.condition("Initialized") == "True" for gang in world.all(GANGS))
            ),
        )
        assert [pod.name for pod in world.pods() if gated(pod)] == [pod.name for pod in scaled(world)]
        assert len(scaled(world)) == 4
        assert world.get(GANGS, "workload2-0").condition("Scheduled") == "False"
        await places.mark(places.nodes[0])
        await world.rest("let go", 10)
        assert not any(map(gated, world.pods()))


async def a_base_gang_that_loses_its_places(world: World) -> None:
    """It costs the scaled gang nothing."""
    async with room(world) as places:
        await places.mark(places.nodes[0])
        await world.create(SETS, places.workload())
        await world.rest("made", 10)
        placed = {pod.uid for pod in scaled(world)}
        await places.mark(places.nodes[0], None)
        for pod in world.pods(clique="workload2-0-pc-a"):
            await world.delete(PODS, pod.name)
        await world.until(lambda: world.get(GANGS, "workload2-0").condition("Scheduled") == "False")
        assert {pod.uid for pod in scaled(world)} == placed
        await world.scale(GROUPS, "workload2-0-sg-x", 3)
        await world.until(lambda: len(scaled(world)) == 8, "newcomers")
        assert {pod.uid for pod in scaled(world) if not gated(pod)} == placed, "newcomers wait"
        await places.mark(places.nodes[1])
        await world.rest("whole again", 14)


async def gates_of_others(world: World) -> None:
    hold = "example.com/hold"
    body = small()
    for template in body["spec"]["template"]["cliques"]:
        template["spec"]["podSpec"]["schedulingGates"] = [{"name": hold}]

    def gates(pod: AnyObject) -> list[str]:
        return [gate["name"] for gate in pod.spec.get("schedulingGates") or ()]

    await world.create(SETS, body)
    await world.rest("held", when=lambda: len(world.pods()) == 5)
    assert all(hold in gates(pod) for pod in world.pods())
    assert all(well_known.GANG_GATE in gates(pod) for pod in scaled(world))
    for pod in world.pods(gang="small-0"):
        test = {"op": "test", "path": "/spec/schedulingGates/0/name", "value": hold}
        remove = {"op": "remove", "path": "/spec/schedulingGates/0"}
        await world.patch(PODS, pod.name, [test, remove], kind=JSON)
    await world.rest(
        "only ours gone",
        when=lambda: (
            all(gates(pod) == [hold] for pod in scaled(world))
            and world.get(GANGS, "small-0").status.get("phase") == "Running"
        ),
    )
    assert not any(scheduled(pod) for pod in scaled(world))


SCENARIOS = {
    "a scaled gang waits for the base gang": a_scaled_gang_waits_for_the_base_gang,
    "a base gang that loses its places": a_base_gang_that_loses_its_places,
    "gates of others": gates_of_others,
}
