"""What the API server refuses is told where the user looks, holds up nobody else, and heals by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, PODS, Resource
from grove.kube.errors import ApiError
from tests.cluster.operator.scenarios.api_errors import complaints
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS
from tests.cluster.operator.support.updates import current, updated
from tests.cluster.operator.support.workloads import clique, group, workload

_ADMISSION = ("admissionregistration.k8s.io", "v1")
POLICIES = Resource(*_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
BINDINGS = Resource(
    *_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)


async def test_a_namespace_on_its_way_out_is_not_fought(world: World, client: Client) -> None:
    """It takes no new pods, and cannot go before somebody lets go of an old one: the set is still there, and
    what it wants is told to be impossible and not tried again."""
    async with operating(world) as operator:
        await world.create(SETS, workload("late", clique("worker", 2)))
        await world.until_ready()
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


@asynccontextmanager
async def pods_may_not_be_deleted(world: World) -> AsyncIterator[None]:
    """A policy of the administrator, in force while the block lasts."""
    name, client = f"keep-pods-{world.namespace}", world.client
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]}
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "pods stay here"}],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    pod = world.pods()[0].name
    await client.create(POLICIES, {"metadata": {"name": name}, "spec": policy}, as_type=Object)
    await client.create(BINDINGS, {"metadata": {"name": name}, "spec": binding}, as_type=Object)
    try:
        async with asyncio.timeout(60):  # no event tells when a policy takes effect
            while not await _is_refused(client, f"{PODS.path(world.namespace, pod)}?dryRun=All"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        yield
    finally:
        await client.delete(BINDINGS, name, as_type=Object)
        await client.delete(POLICIES, name, as_type=Object)


async def _is_refused(client: Client, path: str) -> bool:
    try:
        await client.raw("DELETE", path)
    except ApiError:
        return True
    return False


async def test_a_pod_that_cannot_be_deleted_gets_no_successor(world: World) -> None:
    """The update waits and reports why; it continues when the delete is permitted."""
    async with operating(world) as operator:
        await world.create(SETS, workload("kept", clique("worker", 2)))
        await world.until_ready()
        before = set(world.names(PODS))
        async with pods_may_not_be_deleted(world):
            await change(world, "kept", "next:1", "worker")
            await world.until(lambda: complaints(world, SETS, "kept"), "the error is reported")
            (said,) = complaints(world, SETS, "kept")
            assert "could not delete Pod" in said
            assert "pods stay here" in said
            await operator.recorder.silence(0.5)
            assert set(world.names(PODS)) == before
        await world.until(lambda: updated(world, "kept"), "the update continues")
        assert all(map(current, world.pods()))
