"""What the API server refuses is told where the user looks, holds up nobody else, and heals by itself."""

from __future__ import annotations

from grove.kube.client import Client
from grove.kube.resource import NAMESPACES, PODS
from grove.kube.wire import Object
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.scenarios.refusals import complaints
from tests.cluster.operator.seen import CLIQUES, GROUPS, SETS
from tests.cluster.operator.workloads import clique, group, workload


async def test_a_namespace_on_its_way_out_is_not_fought(world: World, client: Client) -> None:
    """It takes no new pods, and cannot go before somebody lets go of an old one: the set is still there, and
    what it wants is told to be impossible and not tried again."""
    async with operating(world) as operator:
        await world.create(SETS, workload("late", clique("worker", 2)))
        await world.until_whole()
        held = world.pods()[0]
        await world.patch(PODS, held.name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await client.delete(NAMESPACES, world.namespace, as_type=Object)
        await world.until(lambda: complaints(world, CLIQUES, "late-0-worker"))
        (said,) = complaints(world, CLIQUES, "late-0-worker")
        assert "being terminated" in said
        await world.until(lambda: world.names(PODS) == [held.name])
        await operator.recorder.silence()
        refused = operator.recorder.refused_creates()
        assert refused
        assert sorted(refused) == sorted(set(refused)), "no second try"
        assert not operator.recorder.complaints()
        assert complaints(world, CLIQUES, "late-0-worker") == [said]
        await world.patch(PODS, held.name, {"metadata": {"finalizers": None}})
        await world.until(lambda: not world.all(SETS) and world.whole(), "all gone", 120)


async def test_who_is_refused_does_not_keep_others_from_having_done_as_told(world: World) -> None:
    """Pods of one clique are refused for ever: the clique beside it and the group that it is in have observed
    what they were told, and the clique itself has not."""
    impossible = clique("bad", pod={"dnsPolicy": "Nonsense"})
    body = workload("half", clique("good"), impossible, clique("fine"), groups=(group("x", 1, 1, "bad"),))
    async with operating(world):
        await world.create(SETS, body)
        await world.until(lambda: complaints(world, CLIQUES, "half-0-x-0-bad"))
        await world.until(lambda: world.get(CLIQUES, "half-0-good").status.get("readyReplicas") == 1)
        await world.until(lambda: world.get(CLIQUES, "half-0-good").settled, "the good one has done as told")
        await world.until(lambda: world.get(GROUPS, "half-0-x").settled, "and so has the group")
        await world.scale(CLIQUES, "half-0-good", 2)
        await world.until(
            lambda: (
                world.get(CLIQUES, "half-0-good").settled
                and world.get(CLIQUES, "half-0-good").status.get("readyReplicas") == 2
            ),
            "as it does later",
        )
        assert not world.get(CLIQUES, "half-0-x-0-bad").status.get("observedGeneration")
        assert world.get(SETS, "half").status.get("availableReplicas", 0) == 0
