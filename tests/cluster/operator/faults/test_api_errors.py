"""Writes that the API server refuses: they are reported, do not delay other objects, and are retried only
where a retry can succeed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, PODS, Resource
from grove.kube.errors import ApiError
from tests.cluster.operator.scenarios.api_errors import last_errors
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


async def test_create_not_retried_in_terminating_namespace(world: World, client: Client) -> None:
    """The namespace accepts no new pods and stays as long as a finalizer keeps an old one: the set still
    exists, the refused create is reported and not retried."""
    async with operating(world) as operator:
        await world.create(SETS, workload("late", clique("worker", 2)))
        await world.until_ready()
        held = world.pods()[0]
        await world.patch(PODS, held.name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await client.delete(NAMESPACES, world.namespace, as_type=Object)
        await world.until(lambda: last_errors(world, CLIQUES, "late-0-worker"))
        (error,) = last_errors(world, CLIQUES, "late-0-worker")
        assert "being terminated" in error
        await world.until(lambda: world.names(PODS) == [held.name])
        await operator.recorder.until_quiet()
        refused = operator.recorder.refused_creates()
        assert refused
        assert sorted(refused) == sorted(set(refused)), "no retry"
        assert not operator.recorder.warnings()
        assert last_errors(world, CLIQUES, "late-0-worker") == [error]
        await world.patch(PODS, held.name, {"metadata": {"finalizers": None}})
        await world.until(lambda: not world.all(SETS) and world.all_ready(), "all deleted", 120)


async def test_refused_clique_does_not_block_other_statuses(world: World) -> None:
    """The pods of one clique are always refused: `observedGeneration` of the other clique and of the group
    are current, and the one of the refused clique is not set."""
    impossible = clique("bad", pod={"dnsPolicy": "Nonsense"})
    body = workload("half", clique("good"), impossible, clique("fine"), groups=(group("x", 1, 1, "bad"),))
    async with operating(world):
        await world.create(SETS, body)
        await world.until(lambda: last_errors(world, CLIQUES, "half-0-x-0-bad"))
        await world.until(lambda: world.get(CLIQUES, "half-0-good").status.get("readyReplicas") == 1)
        await world.until(
            lambda: world.get(CLIQUES, "half-0-good").settled, "the status of the good clique is current"
        )
        await world.until(lambda: world.get(GROUPS, "half-0-x").settled, "the status of the group is current")
        await world.scale(CLIQUES, "half-0-good", 2)
        await world.until(
            lambda: (
                world.get(CLIQUES, "half-0-good").settled
                and world.get(CLIQUES, "half-0-good").status.get("readyReplicas") == 2
            ),
            "the good clique is scaled out",
        )
        assert not world.get(CLIQUES, "half-0-x-0-bad").status.get("observedGeneration")
        assert world.get(SETS, "half").status.get("availableReplicas", 0) == 0


@asynccontextmanager
async def pods_may_not_be_deleted(world: World) -> AsyncIterator[None]:
    """A ValidatingAdmissionPolicy that refuses to delete pods, in force until the block is left."""
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
        async with asyncio.timeout(60):  # no event reports when a policy takes effect
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


async def test_update_waits_while_pod_cannot_be_deleted(world: World) -> None:
    """The update waits and reports why; it continues when the delete is permitted."""
    async with operating(world) as operator:
        await world.create(SETS, workload("kept", clique("worker", 2)))
        await world.until_ready()
        before = set(world.names(PODS))
        async with pods_may_not_be_deleted(world):
            await change(world, "kept", "next:1", "worker")
            await world.until(lambda: last_errors(world, SETS, "kept"), "the error is reported")
            (error,) = last_errors(world, SETS, "kept")
            assert "could not delete Pod" in error
            assert "pods stay here" in error
            await operator.recorder.until_quiet(0.5)
            assert set(world.names(PODS)) == before
        await world.until(lambda: updated(world, "kept"), "the update continues")
        assert all(map(current, world.pods()))
