"""What the API server refuses is told where the user looks, holds up nobody else, and heals by itself."""

from __future__ import annotations

from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, PODS, Resource
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, answers
from tests.cluster.operator.support.workloads import clique, small, workload

LIMITS = Resource("", "v1", "limitranges", "LimitRange")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


def complaints(world: World, resource: Resource, name: str) -> list[str]:
    """What is said to go wrong with an object, if there is one."""
    found = world.find(resource, name)
    return [error["description"] for error in found.status.get("lastErrors") or ()] if found else []


def says(world: World, resource: Resource, name: str, word: str) -> bool:
    return any(word in said for said in complaints(world, resource, name))


async def a_quota_for_half_a_gang(world: World) -> None:
    await world.watch(QUOTAS)
    await world.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}})
    await world.until(lambda: world.get(QUOTAS, "few").status.get("hard"))
    await world.create(SETS, workload("greedy", clique("worker", 4)))
    await world.rest(
        "told",
        when=lambda: (
            ["quota" in said for said in complaints(world, CLIQUES, "greedy-0-worker")] == [True]
            and len(world.pods()) == 2
        ),
        compared=False,
    )
    (error,) = world.get(CLIQUES, "greedy-0-worker").status["lastErrors"]
    assert error["code"] == "ERR_CREATE_POD"
    await world.delete(QUOTAS, "few")
    await world.rest("healed", 4)


async def a_limit_for_one_clique_of_two(world: World) -> None:
    """The pods of one clique are larger than pods here may be, those of the other are not."""
    limit = {"type": "Container", "max": {"memory": "1Gi"}, "default": {"memory": "512Mi"}}
    await world.create(LIMITS, {"metadata": {"name": "small"}, "spec": {"limits": [limit]}})
    large = {"containers": [{"name": "main", "image": "model:1", "resources": {"limits": {"memory": "2Gi"}}}]}
    await world.create(SETS, workload("half", clique("modest", 2), clique("large", 2, pod=large)))
    await world.rest(
        "told",
        when=lambda: (
            ["maximum memory usage" in said for said in complaints(world, CLIQUES, "half-0-large")] == [True]
            and len(list(filter(answers, world.pods(clique="half-0-modest")))) == 2
            and world.get(CLIQUES, "half-0-modest").settled
            and world.get(GANGS, "half-0").condition("Ready") == "False"
        ),
        compared=False,
    )
    assert not world.pods(clique="half-0-large")
    assert not world.get(SETS, "half").status.get("availableReplicas")
    await world.client.delete(LIMITS, "small", namespace=world.namespace, as_type=Object)
    await world.rest("healed", when=lambda: len(world.pods()) == 4 and world.whole(), compared=False)


async def pods_that_policy_forbids(world: World) -> None:
    async def policy(level: str | None) -> None:
        body = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
        await world.client.patch(NAMESPACES, world.namespace, body, as_type=Object)

    await policy("restricted")
    await world.create(SETS, workload("rough", clique("worker", 2)))
    await world.rest(
        "told", when=lambda: says(world, CLIQUES, "rough-0-worker", "violates PodSecurity"), compared=False
    )
    assert not world.all(PODS)
    await policy(None)
    await world.rest("healed", 2)


async def a_template_that_no_pod_can_be_made_from(world: World) -> None:
    """The host name of pod 10 is one letter longer than that of pod 9, and one too long."""
    long = "w" * (61 - len("tall-0-"))
    await world.create(SETS, workload("tall", clique(long, 11)))
    await world.rest(
        "told",
        when=lambda: says(world, CLIQUES, f"tall-0-{long}", "hostname") and len(world.pods()) == 10,
        compared=False,
    )
    await world.create(SETS, small("fine"))
    await world.rest(
        "another is fine",
        when=lambda: (
            len(list(filter(answers, world.pods(part_of="fine")))) == 5 and world.get(SETS, "fine").settled
        ),
        compared=False,
    )
    await world.parent_goes()
    await world.delete(SETS, "tall")
    await world.rest("without it", 5)


async def a_name_with_dots(world: World) -> None:
    """The webhooks would refuse it: neither a Service nor a host can be called so. It is told, and goes."""
    await world.create(SETS, workload("a.b", clique("worker", 2)))
    await world.create(SETS, workload("plain", clique("a.b", 2)))
    await world.create(SETS, small("fine"))
    await world.rest(
        "told",
        when=lambda: (
            says(world, SETS, "a.b", "a.b-0")
            and says(world, CLIQUES, "plain-0-a.b", "hostname")
            and world.get(SETS, "fine").status.get("availableReplicas") == 1
        ),
        compared=False,
    )
    assert not world.pods(part_of="a.b")
    assert not world.pods(part_of="plain")
    await world.parent_goes()
    await world.delete(SETS, "a.b")
    await world.delete(SETS, "plain")
    await world.rest("without them", 5)


async def two_sets_that_compute_one_name(world: World) -> None:
    """Replica 1 of `x` and replica 0 of `x-1` both want a clique `x-1-0-a`: who comes second is told, keeps
    trying at ease, and takes the name when it is free."""
    await world.create(SETS, workload("x", clique("0-a"), replicas=2))
    await world.rest("one", 2)
    first = {pod.uid for pod in world.pods()}
    await world.create(SETS, workload("x-1", clique("a")))
    await world.create(SETS, small("other"))
    await world.rest(
        "told",
        when=lambda: (
            says(world, SETS, "x-1", "taken")
            and world.get(SETS, "other").status.get("availableReplicas") == 1
        ),
        compared=False,
    )
    assert first <= {pod.uid for pod in world.pods()}
    assert not complaints(world, SETS, "x")
    await world.parent_goes()
    await world.scale(SETS, "x", 1)
    await world.rest("healed", 7)
    assert world.get(CLIQUES, "x-1-0-a").metadata.owner_references[0].name == "x-1"


SCENARIOS = {
    "a quota for half a gang": a_quota_for_half_a_gang,
    "a limit for one clique of two": a_limit_for_one_clique_of_two,
    "pods that policy forbids": pods_that_policy_forbids,
    "a template that no pod can be made from": a_template_that_no_pod_can_be_made_from,
    "a name with dots": a_name_with_dots,
    "two sets that compute one name": two_sets_that_compute_one_name,
}
