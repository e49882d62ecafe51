"""What the API server refuses is told where the user looks, holds up nobody else, and heals by itself."""

from __future__ import annotations

from grove.kube.client import Client
from grove.kube.resource import NAMESPACES, PODS, Resource
from grove.kube.wire import Object
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.seen import CLIQUES, SETS, answers
from tests.cluster.operator.workloads import clique, small, workload

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


def complaints(world: World, resource: Resource, name: str) -> list[str]:
    """What is said to go wrong with an object, if there is one."""
    found = world.find(resource, name)
    return [error["description"] for error in found.status.get("lastErrors") or ()] if found else []


async def test_a_quota_for_half_a_gang_is_told_and_its_end_heals(world: World) -> None:
    await world.watch(QUOTAS)
    await world.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}})
    await world.until(lambda: world.get(QUOTAS, "few").status.get("hard"))
    async with operating(world) as operator:
        await world.create(SETS, workload("greedy", clique("worker", 4)))
        await world.until(
            lambda: any("quota" in said for said in complaints(world, CLIQUES, "greedy-0-worker"))
        )
        assert len(world.pods()) == 2
        (error,) = world.get(CLIQUES, "greedy-0-worker").status["lastErrors"]
        assert error["code"] == "ERR_CREATE_POD"
        calls = len(operator.recorder.calls)
        await world.delete(QUOTAS, "few")
        await world.until(lambda: len(world.pods()) == 4 and world.whole())
        assert calls < 120, "no hot loop"


async def test_pods_that_policy_forbids_are_told_and_its_end_heals(world: World, client: Client) -> None:
    enforce = "pod-security.kubernetes.io/enforce"

    async def policy(level: str | None) -> None:
        await client.patch(
            NAMESPACES, world.namespace, {"metadata": {"labels": {enforce: level}}}, as_type=Object
        )

    await policy("restricted")
    async with operating(world):
        await world.create(SETS, workload("rough", clique("worker", 2)))
        await world.until(lambda: complaints(world, CLIQUES, "rough-0-worker"))
        (said,) = complaints(world, CLIQUES, "rough-0-worker")
        assert "violates PodSecurity" in said
        assert not world.all(PODS)
        await policy(None)
        await world.until(lambda: len(world.pods()) == 2 and world.whole())


async def test_a_template_that_no_pod_can_be_made_from_holds_up_nobody_else(world: World) -> None:
    """The host name of pod 10 is one letter longer than that of pod 9, and one too long."""
    long = "w" * (61 - len("tall-0-"))
    async with operating(world) as operator:
        await world.create(SETS, workload("tall", clique(long, 11)))
        await world.until(lambda: complaints(world, CLIQUES, f"tall-0-{long}"))
        (said,) = complaints(world, CLIQUES, f"tall-0-{long}")
        assert "hostname" in said
        assert len(world.pods()) == 10
        before = len(operator.recorder.calls)
        await world.create(SETS, small("fine"))
        await world.until(lambda: len(list(filter(answers, world.pods(part_of="fine")))) == 5)
        await world.until(lambda: world.get(SETS, "fine").settled)
        assert len(operator.recorder.calls) - before < 100
        await world.delete(SETS, "tall")
        await world.until(lambda: not world.all(PODS, part_of="tall") and world.whole())


async def test_two_sets_that_compute_one_name(world: World) -> None:
    """Replica 1 of `x` and replica 0 of `x-1` both want a clique `x-1-0-a`: who comes second is told, keeps
    trying at ease, and takes the name when it is free."""
    async with operating(world) as operator:
        await world.create(SETS, workload("x", clique("0-a"), replicas=2))
        await world.until(lambda: len(world.pods()) == 2 and world.whole())
        first = {pod.uid for pod in world.pods()}
        await world.create(SETS, workload("x-1", clique("a")))
        await world.create(SETS, small("other"))
        await world.until(lambda: complaints(world, SETS, "x-1"), "the conflict told")
        assert any("taken" in said for said in complaints(world, SETS, "x-1"))
        await world.until(lambda: world.get(SETS, "other").status.get("availableReplicas") == 1)
        assert first <= {pod.uid for pod in world.pods()}
        assert not complaints(world, SETS, "x")
        assert len(operator.recorder.calls) < 200, "no hot loop"
        await world.scale(SETS, "x", 1)
        await world.until(lambda: len(world.all(PODS)) == 7 and world.whole())
        assert world.get(CLIQUES, "x-1-0-a").metadata.owner_references[0].name == "x-1"


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
