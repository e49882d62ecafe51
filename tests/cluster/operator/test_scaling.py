"""Scaling at three levels: out, in, to zero and back; what is scaled in leaves nothing behind."""

from __future__ import annotations

import pytest

from grove.kube.errors import Invalid
from grove.kube.resource import PODS, SERVICES
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.seen import CLIQUES, GANGS, GROUPS, PARTS, SETS
from tests.cluster.operator.workloads import clique, small, upstream, workload


def uids(world: World) -> dict[str, str]:
    return {pod.name: pod.uid for pod in world.pods()}


async def test_a_clique_is_scaled_out_in_and_to_zero_and_back(world: World) -> None:
    async with operating(world):
        await world.create(SETS, upstream("workload2"))
        await world.until_whole()
        before = uids(world)

        await world.scale(CLIQUES, "workload2-0-pc-a", 4)
        await world.until(lambda: len(world.pods(clique="workload2-0-pc-a")) == 4 and world.whole())
        assert before.items() <= uids(world).items(), "scaling out costs nobody anything"

        await world.scale(CLIQUES, "workload2-0-pc-a", 1)
        await world.until(lambda: len(world.pods(clique="workload2-0-pc-a")) == 1 and world.whole())
        assert len(world.pods()) == 9

        await world.scale(CLIQUES, "workload2-0-pc-a", 0)
        await world.until(lambda: not world.all(PODS, clique="workload2-0-pc-a") and world.whole())
        base = world.get(GANGS, "workload2-0")
        assert "workload2-0-pc-a" not in [group["name"] for group in base.spec["podgroups"]]
        assert world.get(CLIQUES, "workload2-0-pc-a").condition("MinAvailableBreached") == "False"

        await world.scale(CLIQUES, "workload2-0-pc-a", 2)
        await world.until(lambda: len(world.pods(clique="workload2-0-pc-a")) == 2 and world.whole())
        base = world.get(GANGS, "workload2-0")
        assert "workload2-0-pc-a" in [group["name"] for group in base.spec["podgroups"]]


async def test_a_group_is_scaled_out_in_and_to_zero_and_back(world: World) -> None:
    async with operating(world):
        await world.create(SETS, upstream("workload2"))
        await world.until_whole()
        kept = {name: uid for name, uid in uids(world).items() if "-sg-x-1-" not in name}

        await world.scale(GROUPS, "workload2-0-sg-x", 4)
        await world.until(lambda: len(world.pods()) == 18 and world.whole())
        assert world.names(GANGS) == ["workload2-0", *(f"workload2-0-sg-x-{index}" for index in range(3))]

        await world.scale(GROUPS, "workload2-0-sg-x", 1)
        await world.until(lambda: len(world.all(PODS)) == 6 and world.whole())
        await world.until(lambda: world.names(GANGS) == ["workload2-0"])
        assert len(world.all(CLIQUES)) == 3
        assert uids(world) == kept, "the base gang is none the wiser"

        await world.scale(GROUPS, "workload2-0-sg-x", 0)
        await world.until(lambda: len(world.all(PODS)) == 2 and world.whole())
        assert world.names(CLIQUES) == ["workload2-0-pc-a"]

        await world.scale(GROUPS, "workload2-0-sg-x", 2)
        await world.until(lambda: len(world.pods()) == 10 and world.whole())
        assert world.names(GANGS) == ["workload2-0", "workload2-0-sg-x-0"]


async def test_a_set_is_scaled_out_in_and_to_zero_and_back(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_whole()
        first = uids(world)

        await world.scale(SETS, "small", 3)
        await world.until(lambda: len(world.pods()) == 15 and world.whole())
        assert first.items() <= uids(world).items()
        assert world.names(SERVICES) == ["small-0", "small-1", "small-2"]

        await world.scale(SETS, "small", 1)
        await world.until(lambda: len(world.all(PODS)) == 5 and world.whole())
        assert uids(world) == first
        assert world.names(SERVICES) == ["small-0"]
        left = {found.name for part in PARTS for found in world.all(part)}
        assert not {name for name in left if name.startswith(("small-1", "small-2"))}

        await world.scale(SETS, "small", 0)
        await world.until(lambda: not any(world.all(part) for part in PARTS))
        await world.until(lambda: not world.get(SETS, "small").status.get("replicas") and world.whole())

        await world.scale(SETS, "small", 1)
        await world.until(lambda: len(world.pods()) == 5 and world.whole())


async def test_a_count_patched_by_hand_is_as_good_as_one_scaled(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_whole()
        await world.patch(SETS, "small", {"spec": {"replicas": 2}})
        await world.until(lambda: len(world.pods()) == 10 and world.whole())
        await world.patch(GROUPS, "small-1-model", {"spec": {"replicas": 3}})
        await world.until(lambda: len(world.pods()) == 12 and world.whole())
        await world.patch(CLIQUES, "small-0-router", {"spec": {"replicas": 2}})
        await world.until(lambda: len(world.pods()) == 13 and world.whole())


async def test_the_count_of_whoever_scaled_survives_a_change_of_the_set(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_whole()
        await world.scale(GROUPS, "small-0-model", 3)
        await world.scale(CLIQUES, "small-0-router", 2)
        await world.until(lambda: len(world.pods()) == 8 and world.whole())

        await world.patch(SETS, "small", {"metadata": {"labels": {"team": "blue"}}})
        await world.until(lambda: all(gang.labels.get("team") == "blue" for gang in world.all(GANGS)))
        await world.scale(SETS, "small", 2)
        await world.until(lambda: len(world.pods()) == 13 and world.whole())
        assert world.get(GROUPS, "small-0-model").spec["replicas"] == 3
        assert world.get(CLIQUES, "small-0-router").spec["replicas"] == 2
        assert world.get(GROUPS, "small-1-model").spec["replicas"] == 2, "a new replica follows the template"


async def test_a_count_between_zero_and_the_minimum_is_refused_at_the_door(world: World) -> None:
    async with operating(world):
        await world.create(SETS, workload("firm", clique("worker", 3, 2)))
        await world.until_whole()
        with pytest.raises(Invalid):
            await world.scale(CLIQUES, "firm-0-worker", 1)
    assert len(world.pods()) == 3
