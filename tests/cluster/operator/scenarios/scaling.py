"""Scaling of sets, groups and cliques: out, in, to zero, back. Scale in deletes all objects of a replica."""

from __future__ import annotations

from grove.kube.client.resource import SERVICES
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, PARTS, SETS
from tests.cluster.operator.support.workloads import small, upstream


def uids(world: World) -> dict[str, str]:
    return {pod.name: pod.uid for pod in world.pods()}


def groups_in(world: World, gang: str) -> list[str]:
    return [group["name"] for group in world.get(GANGS, gang).spec["podgroups"]]


async def clique_out_in_to_zero_and_back(world: World) -> None:
    await world.create(SETS, upstream("workload2"))
    await world.checkpoint("created", 10)
    before = uids(world)
    await world.scale(CLIQUES, "workload2-0-pc-a", 4)
    await world.checkpoint("scaled out", 12)
    assert before.items() <= uids(world).items(), "scale out restarts no pod"
    await world.scale(CLIQUES, "workload2-0-pc-a", 1)
    await world.checkpoint(
        "scaled in", 9, compared=False
    )  # the oldest pod stays: after a lost reply another one
    await world.scale(CLIQUES, "workload2-0-pc-a", 0)
    await world.checkpoint("scaled to zero", 8)
    assert "workload2-0-pc-a" not in groups_in(world, "workload2-0")
    assert world.get(CLIQUES, "workload2-0-pc-a").condition("MinAvailableBreached") == "False"
    await world.scale(CLIQUES, "workload2-0-pc-a", 2)
    await world.checkpoint("scaled back", 10)
    assert "workload2-0-pc-a" in groups_in(world, "workload2-0")


async def group_out_in_to_zero_and_back(world: World) -> None:
    await world.create(SETS, upstream("workload2"))
    await world.checkpoint("created", 10)
    kept = {name: uid for name, uid in uids(world).items() if "-sg-x-1-" not in name}
    await world.scale(GROUPS, "workload2-0-sg-x", 4)
    await world.checkpoint("scaled out", 18)
    assert world.names(GANGS) == ["workload2-0", *(f"workload2-0-sg-x-{index}" for index in range(3))]
    await world.stop_comparing_deletes()
    await world.scale(GROUPS, "workload2-0-sg-x", 1)
    await world.checkpoint("scaled in", 6)
    assert world.names(GANGS) == ["workload2-0"]
    assert len(world.all(CLIQUES)) == 3
    assert uids(world) == kept, "the pods of the base gang stay"
    await world.scale(GROUPS, "workload2-0-sg-x", 0)
    await world.checkpoint("scaled to zero", 2)
    assert world.names(CLIQUES) == ["workload2-0-pc-a"]
    await world.scale(GROUPS, "workload2-0-sg-x", 2)
    await world.checkpoint("scaled back", 10)
    assert world.names(GANGS) == ["workload2-0", "workload2-0-sg-x-0"]


async def set_out_in_to_zero_and_back(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    first = uids(world)
    await world.scale(SETS, "small", 3)
    await world.checkpoint("scaled out", 15)
    assert first.items() <= uids(world).items()
    assert world.names(SERVICES) == ["small-0", "small-1", "small-2"]
    await world.stop_comparing_deletes()
    await world.scale(SETS, "small", 1)
    await world.checkpoint("scaled in", 5)
    assert uids(world) == first
    left = {found.name for part in PARTS for found in world.all(part)}
    assert not {name for name in left if name.startswith(("small-1", "small-2"))}
    await world.scale(SETS, "small", 0)
    await world.checkpoint("scaled to zero", 0)
    await world.scale(SETS, "small", 1)
    await world.checkpoint("scaled back", 5)


async def replicas_patched_in_spec(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    await world.patch(SETS, "small", {"spec": {"replicas": 2}})
    await world.checkpoint("set scaled out", 10)
    await world.patch(GROUPS, "small-1-model", {"spec": {"replicas": 3}})
    await world.checkpoint("group scaled out", 12)
    await world.patch(CLIQUES, "small-0-router", {"spec": {"replicas": 2}})
    await world.checkpoint("clique scaled out", 13)
    await world.stop_comparing_deletes()
    for resource, name, left in ((CLIQUES, "small-0-router", 11), (GROUPS, "small-1-model", 5)):
        await world.patch(resource, name, {"spec": {"replicas": 0}})
        await world.checkpoint(f"{name} scaled to zero", left)
    await world.patch(SETS, "small", {"spec": {"replicas": 0}})
    await world.checkpoint("set scaled to zero", 0)
    await world.patch(SETS, "small", {"spec": {"replicas": 1}})
    await world.checkpoint("set scaled back", 5)


async def scaled_counts_survive_set_update(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    await world.scale(GROUPS, "small-0-model", 3)
    await world.scale(CLIQUES, "small-0-router", 2)
    await world.checkpoint("scaled", 8)
    await world.patch(SETS, "small", {"metadata": {"labels": {"team": "blue"}}})
    await world.until(lambda: all(gang.labels.get("team") == "blue" for gang in world.all(GANGS)))
    await world.scale(SETS, "small", 2)
    await world.checkpoint("set updated", 13)
    assert world.get(GROUPS, "small-0-model").spec["replicas"] == 3
    assert world.get(CLIQUES, "small-0-router").spec["replicas"] == 2
    assert world.get(GROUPS, "small-1-model").spec["replicas"] == 2, (
        "a new replica has the count of the template"
    )


SCENARIOS = {
    "clique out, in, to zero and back": clique_out_in_to_zero_and_back,
    "group out, in, to zero and back": group_out_in_to_zero_and_back,
    "set out, in, to zero and back": set_out_in_to_zero_and_back,
    "replicas patched in spec": replicas_patched_in_spec,
    "scaled counts survive set update": scaled_counts_survive_set_update,
}
