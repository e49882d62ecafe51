"""Gang termination on the real control plane: upstream's scenarios GT1 to GT6, with all nodes cordoned."""

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


def with_short_delay(body: Body) -> Body:
    """The set with a short `terminationDelay`."""
    body["spec"]["template"]["terminationDelay"] = DELAY
    return body


def uids(world: World, *parts: str) -> set[str]:
    return {pod.uid for pod in world.pods() if not parts or any(part in pod.name for part in parts)}


async def delete_ready_pods(world: World, name: str, count: int = 1) -> None:
    """Delete so many ready pods of a clique."""
    ready = [pod for pod in world.pods(clique=name) if pod.condition("Ready") == "True"]
    for pod in ready[:count]:
        await world.delete(PODS, pod.name)


def without_termination_history(snapshot: StateSnapshot) -> StateSnapshot:
    for entry in snapshot.values():
        entry["annotations"].pop("grove.io/terminations", None)
    return snapshot


@pytest.mark.proves("termination", scheduler="any")
@pytest.mark.parametrize(
    ("clique_name", "rates"),
    [("pc-a", None), ("sg-x-0-pc-c", None), ("pc-a", RATES["all faults"]), ("pc-a", RATES["late events"])],
    ids=["gt1", "gt2", "gt1 with all faults", "gt1 with late events"],
)
async def test_gt1_gt2_replica_below_minimum_restarts_once(
    world: World, agents: list[str], clique_name: str, rates: FaultRates | None
) -> None:
    body = with_short_delay(upstream("workload1-gt"))
    body["spec"]["replicas"] = 2
    async with operating(world, rates=rates) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        await operator.recorder.until_quiet()
        healthy = without_termination_history(take_snapshot(world))
        mine, others = uids(world, "-gt-0-"), uids(world, "-gt-1-")
        async with cordoned(world, agents):
            await delete_ready_pods(world, f"workload1-gt-0-{clique_name}")
            await world.until(
                lambda: not mine & {pod.uid for pod in world.all(PODS)} and len(world.pods()) == 20
            )
            restarted = uids(world, "-gt-0-")
            await operator.recorder.until_quiet(5.0)
            assert uids(world, "-gt-0-") == restarted, "one restart for one breach"
        assert uids(world, "-gt-1-") == others
        await world.until_ready()
        assert uids(world, "-gt-0-") == restarted
        try:
            await world.until(
                lambda: without_termination_history(take_snapshot(world)) == healthy, "all as before"
            )
        except AssertionError as problem:
            raise AssertionError(
                f"{differences(healthy, without_termination_history(take_snapshot(world)))}\n{problem}"
            ) from None
        notes = {gang.name: gang.metadata.annotations for gang in world.all(GANGS)}
        assert "grove.io/terminations" in notes["workload1-gt-0"]
        assert "grove.io/terminations" not in notes["workload1-gt-1"]


@pytest.mark.proves("termination", scheduler="any")
async def test_gt3_gt4_gt6_only_breached_gangs_restart(world: World, agents: list[str]) -> None:
    body = with_short_delay(upstream("workload2"))
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        async with cordoned(world, agents):
            before = uids(world)
            await delete_ready_pods(world, "workload2-0-pc-a")
            await delete_ready_pods(world, "workload2-0-sg-x-1-pc-c")
            await operator.recorder.until_quiet(4.0)
            assert len(uids(world) & before) == 8, "pods above the minimum may be missing"

            await delete_ready_pods(world, "workload2-0-sg-x-0-pc-c", 3)
            broken = uids(world, "-sg-x-0-pc-b")
            await world.until(lambda: not broken & {pod.uid for pod in world.all(PODS)})
            await operator.recorder.until_quiet(4.0)
            assert len(uids(world, "-sg-x-1-", "-pc-a-") & before) == 4
            assert len(world.pods()) == 10
            once = uids(world)

            await delete_ready_pods(world, "workload2-0-sg-x-1-pc-c", 2)
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
            "the condition removed",
        )


async def test_gt5_group_replica_restart_keeps_scaled_counts(world: World, agents: list[str]) -> None:
    body = with_short_delay(
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
        await world.until(lambda: len(world.pods()) == 15 and world.all_ready())
        broken, others = uids(world, "w-0-x-1-"), uids(world, "w-0-x-0-", "w-0-x-2-", "w-0-a-")
        cliques = {found.uid for found in world.all(CLIQUES)}
        async with cordoned(world, agents):
            await delete_ready_pods(world, "w-0-x-1-c")
            await world.until(lambda: not broken & {pod.uid for pod in world.all(PODS)})
        await world.until(lambda: len(world.pods()) == 15 and world.all_ready())
        assert others <= uids(world)
        assert {found.uid for found in world.all(CLIQUES)} == cliques


async def test_restarted_operator_knows_earlier_termination(world: World, agents: list[str]) -> None:
    """It knows that pods were scheduled, since when they are missing, and that the gang was terminated."""
    async with operating(world):
        await world.create(SETS, with_short_delay(workload("w", clique("a", 2, 2))))
        await world.until_ready()
    before = uids(world)
    async with cordoned(world, agents):
        await delete_ready_pods(world, "w-0-a")
        async with operating(world):
            await world.until(lambda: world.get(CLIQUES, "w-0-a").condition("MinAvailableBreached") == "True")
        async with operating(world):
            await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)})
            await world.until(lambda: len(world.pods()) == 2)
        restarted = uids(world)
        async with operating(world) as operator:
            await operator.recorder.until_quiet(5.0)
            assert uids(world) == restarted
    async with operating(world):
        await world.until_ready()
    assert uids(world) == restarted


async def test_termination_and_recovery_emit_one_event_each(world: World, agents: list[str]) -> None:
    reasons = {"PodCliqueSetReplicaDeleteSuccessful", "Recovered"}
    await world.watch(EVENTS)
    async with operating(world) as operator:
        await world.create(SETS, with_short_delay(workload("w", clique("a", 2, 2))))
        await world.until_ready()
        before = uids(world)
        async with cordoned(world, agents):
            await delete_ready_pods(world, "w-0-a")
            await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)})
        await world.until_ready()
        await world.until(lambda: reasons <= {event.reason for event in world.all(EVENTS)}, "both events")
        await operator.recorder.until_quiet()
    emitted = [event for event in world.all(EVENTS) if event.reason in reasons]
    assert len(emitted) == len(reasons)
    assert {event.regarding["kind"] for event in emitted} == {"PodCliqueSet"}
    assert any(
        event.note.startswith("w-0 is restarted: w-0-a was below minAvailable for ") for event in emitted
    )
    lost = [event for event in world.all(EVENTS) if event.reason == "AllScheduledReplicasLost"]
    assert lost == [], "pods that the operator itself deleted are not reported as lost"


async def test_stuck_pod_force_deleted_only_with_annotation(world: World) -> None:
    """The pod's node never reports that it has terminated."""
    body = workload(
        "w", clique("a", 2, annotations={GONE_LATER: "1h"}, pod={"terminationGracePeriodSeconds": 1})
    )
    async with operating(world) as operator:
        await world.create(SETS, body)
        await world.until_ready()
        stuck = world.pods()[0]
        await world.delete(PODS, stuck.name)
        await world.until(
            lambda: world.get(CLIQUES, "w-0-a").status["readyReplicas"] == 2 and len(world.pods()) == 2
        )
        await operator.recorder.until_quiet(3.0)
        assert world.find(PODS, stuck.name), "replaced, and still terminating"
        await world.patch(SETS, "w", {"metadata": {"annotations": {keys.FORCE_DELETE_AFTER: "1s"}}})
        await world.until(lambda: world.find(PODS, stuck.name) is None and world.all_ready())
