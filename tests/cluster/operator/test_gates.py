"""Gates: pods of a scaled gang wait until the base gang has its places, and not a moment longer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from grove.api import labels, marks
from grove.kube.client import JSON, Client
from grove.kube.resource import NODES, PODS
from grove.kube.wire import Object
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.seen import GANGS, GROUPS, SETS, Seen, gated
from tests.cluster.operator.workloads import small, upstream


@pytest.fixture
async def room(client: Client, agents: list[str], namespace: str) -> AsyncIterator[str]:
    """A label that no node has yet: who selects it has nowhere to go. No node keeps it."""
    key = f"room.test/{namespace}"
    yield key
    for name in agents:
        await client.patch(NODES, name, {"metadata": {"labels": {key: None}}}, as_type=Object)


async def make_room(world: World, room: str, node: str) -> None:
    await world.client.patch(NODES, node, {"metadata": {"labels": {room: "yes"}}}, as_type=Object)


def scheduled(pod: Seen) -> bool:
    return bool(pod.spec.get("nodeName"))


def scaled(world: World) -> list[Seen]:
    return [pod for pod in world.pods() if labels.BASE_GANG in pod.labels]


def base_first(world: World) -> None:
    """No pod of a scaled gang may be let go while a clique of the base gang is short of places."""
    if all(map(gated, scaled(world))):
        return
    for group in world.get(GANGS, "workload2-0").spec["podgroups"]:
        placed = [pod for pod in world.all(PODS, clique=group["name"]) if scheduled(pod)]
        assert len(placed) >= group["minReplicas"], f"{group['name']} has no places yet\n{world.dump()}"


async def test_a_scaled_gang_waits_for_the_base_gang(world: World, room: str, agents: list[str]) -> None:
    body = upstream("workload2")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {room: "yes"}
    async with operating(world) as operator:
        world.always(lambda: world.find(GANGS, "workload2-0") is None or base_first(world))
        await world.create(SETS, body)
        await world.until(lambda: sum(map(scheduled, world.pods())) == 4 and len(world.pods()) == 10)
        await operator.recorder.silence()
        assert [pod.name for pod in world.pods() if gated(pod)] == [pod.name for pod in scaled(world)]
        assert len(scaled(world)) == 4
        assert world.get(GANGS, "workload2-0").condition("Scheduled") == "False"
        assert world.get(GANGS, "workload2-0").condition("Initialized") == "True"

        await make_room(world, room, agents[0])
        await world.until_whole()
        assert not any(map(gated, world.pods()))


async def test_a_base_gang_that_loses_its_places_costs_the_scaled_gang_nothing(
    world: World, room: str, agents: list[str]
) -> None:
    body = upstream("workload2")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {room: "yes"}
    await make_room(world, room, agents[0])
    async with operating(world):
        await world.create(SETS, body)
        await world.until_whole()
        placed = {pod.uid for pod in scaled(world)}
        await world.client.patch(NODES, agents[0], {"metadata": {"labels": {room: None}}}, as_type=Object)
        for pod in world.pods(clique="workload2-0-pc-a"):
            await world.delete(PODS, pod.name)
        await world.until(lambda: world.get(GANGS, "workload2-0").condition("Scheduled") == "False")
        assert {pod.uid for pod in scaled(world)} == placed
        await world.scale(GROUPS, "workload2-0-sg-x", 3)
        await world.until(lambda: len(scaled(world)) == 8)
        assert {pod.uid for pod in scaled(world) if not gated(pod)} == placed, "newcomers wait"
        await make_room(world, room, agents[1])
        await world.until(lambda: len(world.pods()) == 14 and world.whole())


async def test_gates_of_others_are_kept(world: World) -> None:
    hold = "example.com/hold"
    body = small()
    for template in body["spec"]["template"]["cliques"]:
        template["spec"]["podSpec"]["schedulingGates"] = [{"name": hold}]

    def gates(pod: Seen) -> list[str]:
        return [gate["name"] for gate in pod.spec.get("schedulingGates") or ()]

    async with operating(world):
        await world.create(SETS, body)
        await world.until(lambda: len(world.pods()) == 5)
        assert all(hold in gates(pod) for pod in world.pods())
        assert all(marks.GANG_GATE in gates(pod) for pod in scaled(world))
        for pod in world.pods(gang="small-0"):
            test = {"op": "test", "path": "/spec/schedulingGates/0/name", "value": hold}
            await world.patch(
                PODS, pod.name, [test, {"op": "remove", "path": "/spec/schedulingGates/0"}], kind=JSON
            )
        await world.until(lambda: all(gates(pod) == [hold] for pod in scaled(world)), "only our gate gone")
        await world.until(lambda: world.get(GANGS, "small-0").status.get("phase") == "Running")
        assert not any(scheduled(pod) for pod in scaled(world))
