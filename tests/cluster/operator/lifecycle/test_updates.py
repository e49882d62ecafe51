"""Rollouts: one replica of the set after another, and in it one pod or one group replica at a time. Named
after upstream's scenarios where there is one."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from grove.api.naming import labels
from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.nodes import cordoned
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS, AnyObject, is_ready
from tests.cluster.operator.support.state_snapshot import take_snapshot
from tests.cluster.operator.support.updates import current, progress_of, slow, updated
from tests.cluster.operator.support.workloads import upstream


def unit(pod: AnyObject) -> str:
    """The unit that is replaced as a whole with a pod: a group replica, or the pod alone."""
    if group := pod.labels.get(labels.GROUP):
        return f"{group}/{pod.labels[labels.GROUP_REPLICA]}"
    return f"{pod.labels[labels.CLIQUE]}/{pod.labels[labels.POD_INDEX]}"


class UnreadyUnits:
    """Records after every watch event which units are not ready."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.units = {unit(pod) for pod in world.pods()}
        self.seen: list[frozenset[str]] = []
        world.always(self.look)

    def look(self) -> None:
        pods: dict[str, list[AnyObject]] = {}
        for pod in self.world.all(PODS):
            pods.setdefault(unit(pod), []).append(pod)
        down = frozenset(
            name for name in self.units if not pods.get(name) or not all(map(is_ready, pods[name]))
        )
        if not self.seen or self.seen[-1] != down:
            self.seen.append(down)

    def most_at_once(self, prefix: str = "") -> int:
        return max(len([name for name in down if name.startswith(prefix)]) for down in self.seen)

    def replicas(self, name: str) -> list[int]:
        """The replicas of a set that had unready units, in order; asserts that no two had at once."""
        order: list[int] = []
        for down in self.seen:
            touched = {int(unit.removeprefix(f"{name}-").split("-")[0]) for unit in down}
            assert len(touched) <= 1, f"two replicas at once: {down}"
            order += [index for index in touched if order[-1:] != [index]]
        return order


def counts_follow_the_hash(world: World, name: str) -> None:
    """Add the invariant that each published status is true of one template: counts of the template before
    never appear beside the new hash, and an ended update counts all replicas."""
    before = world.get(SETS, name).status["currentGenerationHash"]

    def rule() -> None:
        found = world.get(SETS, name)
        status, progress = found.status, found.status.get("updateProgress", {})
        if status["currentGenerationHash"] == before:
            return
        behind = {pod.labels[labels.SET_REPLICA] for pod in world.all(PODS) if not current_in_clique(pod)}
        assert status["updatedReplicas"] <= found.spec["replicas"] - len(behind), status
        if progress.get("updateEndedAt"):
            assert status["updatedReplicas"] == found.spec["replicas"], status
            assert progress["updatedPodCliquesCount"] == progress["totalPodCliquesCount"], status

    world.always(rule)


def current_in_clique(pod: AnyObject) -> bool:
    return current(pod) or "-pc-a-" not in pod.name


@pytest.mark.proves("updates", scheduler="any")
async def test_ru7_update_replaces_one_pod_and_replica_at_a_time(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload1"), 2))
        await world.until_ready()
        await operator.recorder.until_quiet()
        others = {pod.uid for pod in world.pods() if "-pc-a-" not in pod.name}
        unready = UnreadyUnits(world)
        counts_follow_the_hash(world, "workload1")
        with capture_logs() as logs:
            await change(world, "workload1", "next:1", "pc-a")
            await world.until(lambda: updated(world, "workload1"))
    assert not [line for line in logs if line["event"] == "plan has no effect"]
    assert unready.most_at_once() == 1
    assert unready.replicas("workload1") == [0, 1]
    assert others == {pod.uid for pod in world.pods() if "-pc-a-" not in pod.name}, (
        "pods of unchanged cliques stay"
    )
    assert all(current(pod) for pod in world.pods() if "-pc-a-" in pod.name)
    assert "currentlyUpdating" not in world.get(SETS, "workload1").status["updateProgress"]


@pytest.mark.proves("updates", scheduler="any")
async def test_ru8_update_replaces_one_group_replica_at_a_time(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload1"), 2))
        await world.until_ready()
        await operator.recorder.until_quiet()
        alone = {pod.uid for pod in world.pods() if "-pc-a-" in pod.name}
        inside = {pod.uid for pod in world.pods()} - alone
        unready = UnreadyUnits(world)
        await change(world, "workload1", "next:1", "pc-b")
        await world.until(lambda: updated(world, "workload1"))
    assert unready.most_at_once() == 1
    assert unready.replicas("workload1") == [0, 1]
    assert not inside & {pod.uid for pod in world.pods()}, "a group replica is replaced as a whole"
    assert alone <= {pod.uid for pod in world.pods()}


async def test_ru9_three_changes_in_a_row_are_one_update(world: World, agents: list[str]) -> None:
    """All nodes are cordoned meanwhile: no replica can be updated before the last change."""
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload1"), 2))
        await world.until_ready()
        await operator.recorder.until_quiet()
        unready = UnreadyUnits(world)
        async with cordoned(world, agents):
            for clique in ("pc-a", "pc-b", "pc-c"):
                await change(world, "workload1", "next:1", clique)
        await world.until(lambda: all(map(current, world.pods())) and updated(world, "workload1"))
    assert unready.replicas("workload1") == [0, 1]
    for index in (0, 1):
        for part in ("pc-a", "sg-x"):
            assert unready.most_at_once(f"workload1-{index}-{part}") == 1


async def test_ru10_unschedulable_update_costs_one_pod(world: World, agents: list[str]) -> None:
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload1")))
        await world.until_ready()
        before = {pod.uid for pod in world.pods()}
        async with cordoned(world, agents):
            await change(world, "workload1", "next:1", "pc-a")
            await world.until(
                lambda: len(before & {pod.uid for pod in world.all(PODS)}) == 9 and len(world.pods()) == 10
            )
            await operator.recorder.until_quiet()
            assert len(before & {pod.uid for pod in world.pods()}) == 9
            clique = world.get(CLIQUES, "workload1-0-pc-a")
            assert clique.condition("MinAvailableBreached") == "Unknown"
        await world.until(lambda: updated(world, "workload1"))


async def test_updated_set_equals_newly_created_set(world: World) -> None:
    """All but the progress of the update and the generations."""
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload2"), 2))
        await world.until_ready()
        await change(world, "workload2", "broken:1", "pc-a", "pc-b")
        await world.until(lambda: any(current(pod, "broken:1") for pod in world.pods()))
        await change(world, "workload2", "next:1", "pc-a", "pc-b", "pc-c")
        await world.until(lambda: all(map(current, world.pods())) and updated(world, "workload2"))
        await operator.recorder.until_quiet()
        rolled_out = take_snapshot(world)
        spec = world.get(SETS, "workload2").spec
        await world.delete(SETS, "workload2")
        await world.until(lambda: not world.all(SETS) and world.all_ready(), seconds=180)
        await world.create(SETS, {**upstream("workload2"), "spec": spec})
        await world.until_ready()
        await operator.recorder.until_quiet()
        fresh = take_snapshot(world)
    for snapshot in (rolled_out, fresh):
        for entry in snapshot.values():
            entry["status"].pop("updateProgress", None)
    assert rolled_out == fresh


SCALED = [
    ("during", "ru11 set out", SETS, "workload1", 3, 30),
    ("during", "ru12 set in", SETS, "workload1", 1, 10),
    ("during", "ru14 group out", GROUPS, "workload1-0-sg-x", 3, 24),
    ("before", "ru15 group out", GROUPS, "workload1-1-sg-x", 3, 24),
    ("during", "ru18 clique out", CLIQUES, "workload1-0-pc-a", 3, 21),
    ("before", "ru19 clique out", CLIQUES, "workload1-1-pc-a", 3, 21),
]


@pytest.mark.parametrize(("when", "what", "kind", "name", "count", "pods"), SCALED)
async def test_ru11_to_ru19_scaling_near_an_update_completes(
    world: World, when: str, what: str, kind: Any, name: str, count: int, pods: int
) -> None:
    everything = ("pc-a", "pc-b", "pc-c")
    async with operating(world):
        await world.create(SETS, slow(upstream("workload1"), 2))
        await world.until_ready()
        if when == "before":
            await world.scale(kind, name, count)
        await change(world, "workload1", "next:1", *everything)
        if when == "during":
            await world.until(lambda: _updating_replica(world, "workload1") == 1)
            await world.scale(kind, name, count)
        await world.until(
            lambda: (
                len(world.all(PODS)) == pods
                and all(map(current, world.pods()))
                and updated(world, "workload1")
            ),
            f"the end of {what}",
        )
    assert world.get(kind, name).spec["replicas"] == count


async def test_ru16_ru20_scale_in_during_update_completes(world: World) -> None:
    async with operating(world):
        await world.create(SETS, slow(upstream("workload2"), 2))
        await world.until_ready()
        await world.scale(GROUPS, "workload2-0-sg-x", 3)
        await world.scale(CLIQUES, "workload2-1-pc-a", 3)
        await world.until(lambda: len(world.pods()) == 25 and world.all_ready())
        await change(world, "workload2", "next:1", "pc-a", "pc-b", "pc-c")
        await world.until(lambda: any(map(current, world.pods())))
        await world.scale(GROUPS, "workload2-0-sg-x", 1)
        await world.until(lambda: _updating_replica(world, "workload2") == 1)
        await world.scale(CLIQUES, "workload2-1-pc-a", 1)
        await world.until(
            lambda: (
                len(world.all(PODS)) == 15 and all(map(current, world.pods())) and updated(world, "workload2")
            )
        )


async def test_ru13_ru17_ru21_scale_in_before_and_after_update(world: World) -> None:
    everything = ("pc-a", "pc-b", "pc-c")
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload1"), 2))
        await world.until_ready()
        for index in (0, 1):
            await world.scale(GROUPS, f"workload1-{index}-sg-x", 3)
            await world.scale(CLIQUES, f"workload1-{index}-pc-a", 3)
        await world.until(lambda: len(world.pods()) == 30 and world.all_ready())
        for index in (0, 1):
            await world.scale(GROUPS, f"workload1-{index}-sg-x", 2)
            await world.scale(CLIQUES, f"workload1-{index}-pc-a", 2)
        await change(world, "workload1", "next:1", *everything)
        await world.until(
            lambda: (
                len(world.all(PODS)) == 20 and all(map(current, world.pods())) and updated(world, "workload1")
            ),
            "the end of ru17 and ru21",
        )
        left = {pod.uid for pod in world.pods() if "workload1-0-" in pod.name}
        ended = progress_of(world, "workload1")["updateEndedAt"]
        await world.scale(SETS, "workload1", 1)
        await world.until(lambda: len(world.all(PODS)) == 10 and updated(world, "workload1"), "ru13")
        await operator.recorder.until_quiet()
    assert {pod.uid for pod in world.all(PODS)} == left, "updated pods are not updated again"
    assert progress_of(world, "workload1")["updateEndedAt"] == ended


def _updating_replica(world: World, name: str) -> int | None:
    entries = progress_of(world, name).get("currentlyUpdating") or [{}]
    return entries[0].get("replicaIndex")
