"""Gang termination on the real control plane: GT1 to GT6, with all nodes closed to new pods."""

from __future__ import annotations

import pytest

from grove.api.naming import annotations as keys
from grove.kube.client.resource import EVENTS, PODS
from grove.kube.testing.faults import FaultRates
from tests.cluster.operator.faults.test_fault_injection import RATES
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.nodes import cordoned
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.state_snapshot import StateSnapshot, differences, take_snapshot
from tests.cluster.operator.support.workloads import GONE_LATER, Body, clique, group, upstream, workload

DELAY = "2s"


def hasty(body: Body) -> Body:
    body["spec"]["template"]["terminationDelay"] = DELAY
    return body


def uids(world: World, *parts: str) -> set[str]:
    return {pod.uid for pod in world.pods() if not parts or any(part in pod.name for part in parts)}


async def lose(world: World, name: str, count: int = 1) -> None:
    """Ready pods of a clique are deleted."""
    ready = [pod for pod in world.pods(clique=name) if pod.condition("Ready") == "True"]
    for pod in ready[:count]:
        await world.delete(PODS, pod.name)


def forgiven(seen: StateSnapshot) -> StateSnapshot:
    """The picture without what gangs remember of their terminations."""
    for portrait in seen.values():
        portrait["annotations"].pop("grove.io/terminations", None)
    return seen


@pytest.mark.parametrize(
    ("victim", "weather"),
    [("pc-a", None), ("sg-x-0-pc-c", None), ("pc-a", RATES["everything"]), ("pc-a", RATES["lag"])],
    ids=["gt1", "gt2", "gt1 in bad weather", "gt1 seen late"],
)
async def test_gt1_gt2_below_the_minimum_the_whole_replica_is_started_anew_once(
    world: World, agents: list[str], victim: str, weather: FaultRates | None
) -> None:
    body = hasty(upstream("workload1-gt"))
    body["spec"]["replicas"] = 2
    async with operating(world, rates=weather) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        await operator.recorder.silence()
        healthy = forgiven(take_snapshot(world))
        mine, others = uids(world, "-gt-0-"), uids(world, "-gt-1-")
        async with cordoned(world, agents):
            await lose(world, f"workload1-gt-0-{victim}")
            await world.until(
                lambda: not mine & {pod.uid for pod in world.all(PODS)} and len(world.pods()) == 20
            )
            anew = uids(world, "-gt-0-")
            await operator.recorder.silence(5.0)
            assert uids(world, "-gt-0-") == anew, "once for a breach"
        assert uids(world, "-gt-1-") == others
        await world.until_ready()
        assert uids(world, "-gt-0-") == anew
        try:
            await world.until(lambda: forgiven(take_snapshot(world)) == healthy, "all as before")
        except AssertionError as problem:
            raise AssertionError(
                f"{differences(healthy, forgiven(take_snapshot(world)))}\n{problem}"
            ) from None
        notes = {gang.name: gang.metadata.annotations for gang in world.all(GANGS)}
        assert "grove.io/terminations" in notes["workload1-gt-0"]
        assert "grove.io/terminations" not in notes["workload1-gt-1"]


async def test_gt3_gt4_gt6_only_what_has_lost_its_minimum_goes(world: World, agents: list[str]) -> None:
    body = hasty(upstream("workload2"))
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        async with cordoned(world, agents):
            before = uids(world)
            await lose(world, "workload2-0-pc-a")
            await lose(world, "workload2-0-sg-x-1-pc-c")
            await operator.recorder.silence(4.0)
            assert len(uids(world) & before) == 8, "what is above the minimum may be missing"

            await lose(world, "workload2-0-sg-x-0-pc-c", 3)
            broken = uids(world, "-sg-x-0-pc-b")
            await world.until(lambda: not broken & {pod.uid for pod in world.all(PODS)})
            await operator.recorder.silence(4.0)
            assert len(uids(world, "-sg-x-1-", "-pc-a-") & before) == 4
            assert len(world.pods()) == 10
            once = uids(world)

            await lose(world, "workload2-0-sg-x-1-pc-c", 2)
            await world.until(
                lambda: not once & {pod.uid for pod in world.all(PODS)} and len(world.pods()) == 10
            )
            group_ = world.get(GROUPS, "workload2-0-sg-x")
            await world.until(
                lambda: world.get(GROUPS, group_.name).condition("GangTerminationInProgress") == "True"
            )
        await world.until_ready()
        await world.until(
            lambda: not world.get(GROUPS, "workload2-0-sg-x").condition("GangTerminationInProgress"),
            "the termination told to be over",
        )


async def test_gt5_a_replica_of_a_group_is_started_anew_and_counts_survive(
    world: World, agents: list[str]
) -> None:
    body = hasty(
        workload(
            "w",
            clique("a", 2, 1),
            clique("b"),
            clique("c", 3, 3),
            groups=(group("x", 2, 1, "b", "c"),),
        )
    )
    async with operating(world):
        await world.create(SETS, body)
        await world.until_ready()
        await world.scale(GROUPS, "w-0-x", 3)
        await world.scale(CLIQUES, "w-0-a", 3)
        await world.until(lambda: len(world.pods()) == 15 and world.whole())
        broken, others = uids(world, "w-0-x-1-"), uids(world, "w-0-x-0-", "w-0-x-2-", "w-0-a-")
        cliques = {found.uid for found in world.all(CLIQUES)}
        async with cordoned(world, agents):
            await lose(world, "w-0-x-1-c")
            await world.until(lambda: not broken & {pod.uid for pod in world.all(PODS)})
        await world.until(lambda: len(world.pods()) == 15 and world.whole())
        assert others <= uids(world)
        assert {found.uid for found in world.all(CLIQUES)} == cliques


async def test_an_operator_that_comes_later_knows_what_was(world: World, agents: list[str]) -> None:
    """That pods had their nodes, since when they are missing, and that the gang was terminated for it."""
    async with operating(world):
        await world.create(SETS, hasty(workload("w", clique("a", 2, 2))))
        await world.until_ready()
    before = uids(world)
    async with cordoned(world, agents):
        await lose(world, "w-0-a")
        async with operating(world):
            await world.until(lambda: world.get(CLIQUES, "w-0-a").condition("MinAvailableBreached") == "True")
        async with operating(world):
            await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)})
            await world.until(lambda: len(world.pods()) == 2)
        anew = uids(world)
        async with operating(world) as operator:
            await operator.recorder.silence(5.0)
            assert uids(world) == anew
    async with operating(world):
        await world.until_ready()
    assert uids(world) == anew


async def test_it_is_told_once_and_so_is_that_it_is_over(world: World, agents: list[str]) -> None:
    stories = {"PodCliqueSetReplicaDeleteSuccessful", "Recovered"}
    await world.watch(EVENTS)
    async with operating(world) as operator:
        await world.create(SETS, hasty(workload("w", clique("a", 2, 2))))
        await world.until_ready()
        before = uids(world)
        async with cordoned(world, agents):
            await lose(world, "w-0-a")
            await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)})
        await world.until_ready()
        await world.until(lambda: stories <= {event.reason for event in world.all(EVENTS)}, "both events")
        await operator.recorder.silence()
    told = [event for event in world.all(EVENTS) if event.reason in stories]
    assert len(told) == len(stories)
    assert {event.regarding["kind"] for event in told} == {"PodCliqueSet"}
    assert any(event.note.startswith("w-0 is restarted: w-0-a was below minAvailable for ") for event in told)
    lost = [event for event in world.all(EVENTS) if event.reason == "AllScheduledReplicasLost"]
    assert lost == [], "it was us, and we said so"


async def test_a_pod_that_does_not_go_is_forgotten_where_the_user_says_so(world: World) -> None:
    """Its node never says that it has ended."""
    body = workload(
        "w", clique("a", 2, annotations={GONE_LATER: "1h"}, pod={"terminationGracePeriodSeconds": 1})
    )
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        ghost = world.pods()[0]
        await world.delete(PODS, ghost.name)
        await world.until(
            lambda: world.get(CLIQUES, "w-0-a").status["readyReplicas"] == 2 and len(world.pods()) == 2
        )
        await operator.recorder.silence(3.0)
        assert world.find(PODS, ghost.name), "replaced, and not forgotten"
        await world.patch(SETS, "w", {"metadata": {"annotations": {keys.FORCE_DELETE_AFTER: "1s"}}})
        await world.until(lambda: world.find(PODS, ghost.name) is None and world.whole())
