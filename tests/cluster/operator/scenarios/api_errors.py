"""Writes that the API server refuses: the error is reported in `status.lastErrors` of the object that it
belongs to, other workloads are not delayed, and creation resumes when the cause is removed."""

from __future__ import annotations

from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, PODS, Resource
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, is_ready
from tests.cluster.operator.support.workloads import clique, small, workload

LIMITS = Resource("", "v1", "limitranges", "LimitRange")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
QUOTA_CONTROLLER_START = 600.0
"""It starts when the informers of all kinds are synced at once. Each kind whose CRD another test deletes
before that delays it by up to a minute."""


def last_errors(world: World, resource: Resource, name: str) -> list[str]:
    """The descriptions in `status.lastErrors` of an object; empty if the object does not exist."""
    found = world.find(resource, name)
    return [error["description"] for error in found.status.get("lastErrors") or ()] if found else []


def says(world: World, resource: Resource, name: str, word: str) -> bool:
    """Whether one of the last errors of an object contains a word."""
    return any(word in error for error in last_errors(world, resource, name))


async def quota_below_gang_size(world: World) -> None:
    await world.watch(QUOTAS)
    await world.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}})
    await world.until(
        lambda: world.get(QUOTAS, "few").status.get("hard"), "hard limits", QUOTA_CONTROLLER_START
    )
    await world.create(SETS, workload("greedy", clique("worker", 4)))
    await world.checkpoint(
        "error reported",
        when=lambda: (
            ["quota" in error for error in last_errors(world, CLIQUES, "greedy-0-worker")] == [True]
            and len(world.pods()) == 2
        ),
        compared=False,
    )
    (error,) = world.get(CLIQUES, "greedy-0-worker").status["lastErrors"]
    assert error["code"] == "ERR_CREATE_POD"
    await world.delete(QUOTAS, "few")
    await world.checkpoint("quota deleted", 4)


async def limit_range_refuses_one_of_two_cliques(world: World) -> None:
    """The pods of one clique exceed the LimitRange of the namespace, those of the other do not."""
    limit = {"type": "Container", "max": {"memory": "1Gi"}, "default": {"memory": "512Mi"}}
    await world.create(LIMITS, {"metadata": {"name": "small"}, "spec": {"limits": [limit]}})
    large = {"containers": [{"name": "main", "image": "model:1", "resources": {"limits": {"memory": "2Gi"}}}]}
    await world.create(SETS, workload("half", clique("modest", 2), clique("large", 2, pod=large)))
    await world.checkpoint(
        "error reported",
        when=lambda: (
            ["maximum memory usage" in error for error in last_errors(world, CLIQUES, "half-0-large")]
            == [True]
            and len(list(filter(is_ready, world.pods(clique="half-0-modest")))) == 2
            and world.get(CLIQUES, "half-0-modest").settled
            and world.get(GANGS, "half-0").condition("Ready") == "False"
        ),
        compared=False,
    )
    assert not world.pods(clique="half-0-large")
    assert not world.get(SETS, "half").status.get("availableReplicas")
    await world.client.delete(LIMITS, "small", namespace=world.namespace, as_type=Object)
    await world.checkpoint(
        "limit deleted", when=lambda: len(world.pods()) == 4 and world.all_ready(), compared=False
    )


async def pod_security_refuses_pods(world: World) -> None:
    async def policy(level: str | None) -> None:
        body = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
        await world.client.patch(NAMESPACES, world.namespace, body, as_type=Object)

    await policy("restricted")
    await world.create(SETS, workload("rough", clique("worker", 2)))
    await world.checkpoint(
        "error reported",
        when=lambda: says(world, CLIQUES, "rough-0-worker", "violates PodSecurity"),
        compared=False,
    )
    assert not world.all(PODS)
    await policy(None)
    await world.checkpoint("policy removed", 2)


async def host_name_too_long_for_one_pod(world: World) -> None:
    """The host name of pod 10 is one letter longer than that of pod 9, and longer than a label may be."""
    long = "w" * (61 - len("tall-0-"))
    await world.create(SETS, workload("tall", clique(long, 11)))
    await world.checkpoint(
        "error reported",
        when=lambda: says(world, CLIQUES, f"tall-0-{long}", "hostname") and len(world.pods()) == 10,
        compared=False,
    )
    await world.create(SETS, small("fine"))
    await world.checkpoint(
        "other set ready",
        when=lambda: (
            len(list(filter(is_ready, world.pods(part_of="fine")))) == 5 and world.get(SETS, "fine").settled
        ),
        compared=False,
    )
    await world.stop_comparing_deletes()
    await world.delete(SETS, "tall")
    await world.checkpoint("set deleted", 5)


async def names_with_dots(world: World) -> None:
    """No Service and no host can have such a name. The webhooks would refuse it; without them the error is
    reported, and the sets can be deleted."""
    await world.create(SETS, workload("a.b", clique("worker", 2)))
    await world.create(SETS, workload("plain", clique("a.b", 2)))
    await world.create(SETS, small("fine"))
    await world.checkpoint(
        "error reported",
        when=lambda: (
            says(world, SETS, "a.b", "a.b-0")
            and says(world, CLIQUES, "plain-0-a.b", "hostname")
            and world.get(SETS, "fine").status.get("availableReplicas") == 1
        ),
        compared=False,
    )
    assert not world.pods(part_of="a.b")
    assert not world.pods(part_of="plain")
    await world.stop_comparing_deletes()
    await world.delete(SETS, "a.b")
    await world.delete(SETS, "plain")
    await world.checkpoint("sets deleted", 5)


async def name_conflict_of_two_sets(world: World) -> None:
    """Replica 1 of `x` and replica 0 of `x-1` both need a clique `x-1-0-a`: the second set reports the
    conflict, retries with back-off, and creates the clique when the name is free."""
    await world.create(SETS, workload("x", clique("0-a"), replicas=2))
    await world.checkpoint("first set ready", 2)
    first = {pod.uid for pod in world.pods()}
    await world.create(SETS, workload("x-1", clique("a")))
    await world.create(SETS, small("other"))
    await world.checkpoint(
        "error reported",
        when=lambda: (
            says(world, SETS, "x-1", "taken")
            and world.get(SETS, "other").status.get("availableReplicas") == 1
        ),
        compared=False,
    )
    assert first <= {pod.uid for pod in world.pods()}
    assert not last_errors(world, SETS, "x")
    await world.stop_comparing_deletes()
    await world.scale(SETS, "x", 1)
    await world.checkpoint("conflict resolved", 7)
    assert world.get(CLIQUES, "x-1-0-a").metadata.owner_references[0].name == "x-1"


SCENARIOS = {
    "quota below gang size": quota_below_gang_size,
    "limit range refuses one of two cliques": limit_range_refuses_one_of_two_cliques,
    "pod security refuses pods": pod_security_refuses_pods,
    "host name too long for one pod": host_name_too_long_for_one_pod,
    "names with dots": names_with_dots,
    "name conflict of two sets": name_conflict_of_two_sets,
}
