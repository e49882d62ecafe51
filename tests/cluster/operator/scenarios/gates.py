"""Scheduling gates: pods of a scaled gang keep their gate until the base gang is scheduled."""

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


class NodeLabel:
    """A node label that no node has at first: pods that select it are unschedulable. The label is the same in
    every run, since it is part of the template and thus of the template hash."""

    key = "room.test/here"

    def __init__(self, world: World, nodes: list[str]) -> None:
        self._world, self.nodes = world, nodes

    async def mark(self, node: str, value: str | None = "yes") -> None:
        body = {"metadata": {"labels": {self.key: value}}}
        await self._world.client.patch(NODES, node, body, as_type=Object)

    def workload(self) -> Body:
        """A set whose first clique selects the label."""
        body = upstream("workload2")
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {self.key: "yes"}
        return body


@asynccontextmanager
async def node_label(world: World) -> AsyncIterator[NodeLabel]:
    """The label; removed from all nodes when the block is left."""
    listed = await world.client.list(NODES, as_type=Object)
    label = NodeLabel(world, sorted(node.metadata.name for node in listed.items))
    try:
        yield label
    finally:
        for node in label.nodes[:2]:
            await label.mark(node, None)


def scheduled(pod: AnyObject) -> bool:
    return bool(pod.spec.get("nodeName"))


def scaled(world: World) -> list[AnyObject]:
    return [pod for pod in world.pods() if labels.BASE_GANG in pod.labels]


def base_first(world: World) -> None:
    """No pod of a scaled gang loses its gate while a clique of the base gang has fewer scheduled pods than
    its minimum. While the set is deleted, any order is fine."""
    base, workload = world.find(GANGS, "workload2-0"), world.find(SETS, "workload2")
    if base is None or workload is None or workload.terminating or all(map(gated, scaled(world))):
        return
    for group in base.spec["podgroups"]:
        on_nodes = [pod for pod in world.all(PODS, clique=group["name"]) if scheduled(pod)]
        assert len(on_nodes) >= group["minReplicas"], f"{group['name']} is not scheduled\n{world.dump()}"


async def scaled_gang_waits_for_base_gang(world: World) -> None:
    async with node_label(world) as label:
        world.always(lambda: base_first(world))
        await world.create(SETS, label.workload())
        await world.checkpoint(
            "gated",
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
        await label.mark(label.nodes[0])
        await world.checkpoint("ungated", 10)
        assert not any(map(gated, world.pods()))


async def base_gang_loses_its_nodes(world: World) -> None:
    """The running pods of the scaled gang stay; new ones are gated."""
    async with node_label(world) as label:
        await label.mark(label.nodes[0])
        await world.create(SETS, label.workload())
        await world.checkpoint("created", 10)
        running = {pod.uid for pod in scaled(world)}
        await label.mark(label.nodes[0], None)
        for pod in world.pods(clique="workload2-0-pc-a"):
            await world.delete(PODS, pod.name)
        await world.until(lambda: world.get(GANGS, "workload2-0").condition("Scheduled") == "False")
        assert {pod.uid for pod in scaled(world)} == running
        await world.scale(GROUPS, "workload2-0-sg-x", 3)
        await world.until(lambda: len(scaled(world)) == 8, "the new pods")
        assert {pod.uid for pod in scaled(world) if not gated(pod)} == running, "new pods are gated"
        await label.mark(label.nodes[1])
        await world.checkpoint("base gang scheduled", 14)


async def foreign_gates_stay(world: World) -> None:
    hold = "example.com/hold"
    body = small()
    for template in body["spec"]["template"]["cliques"]:
        template["spec"]["podSpec"]["schedulingGates"] = [{"name": hold}]

    def gates(pod: AnyObject) -> list[str]:
        return [gate["name"] for gate in pod.spec.get("schedulingGates") or ()]

    await world.create(SETS, body)
    await world.checkpoint("gated", when=lambda: len(world.pods()) == 5)
    assert all(hold in gates(pod) for pod in world.pods())
    assert all(well_known.GANG_GATE in gates(pod) for pod in scaled(world))
    for pod in world.pods(gang="small-0"):
        test = {"op": "test", "path": "/spec/schedulingGates/0/name", "value": hold}
        remove = {"op": "remove", "path": "/spec/schedulingGates/0"}
        await world.patch(PODS, pod.name, [test, remove], kind=JSON)
    await world.checkpoint(
        "our gate removed",
        when=lambda: (
            all(gates(pod) == [hold] for pod in scaled(world))
            and world.get(GANGS, "small-0").status.get("phase") == "Running"
        ),
    )
    assert not any(scheduled(pod) for pod in scaled(world))


SCENARIOS = {
    "scaled gang waits for base gang": scaled_gang_waits_for_base_gang,
    "base gang loses its nodes": base_gang_loses_its_nodes,
    "foreign gates stay": foreign_gates_stay,
}
