"""ServiceAccount, Role, RoleBinding and token Secret for the init containers of a set: created once for each
set that has a startup order, repaired, and deleted with the set."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from grove.api.error_codes import ErrorCode
from grove.kube.client.resource import PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, Resource
from grove.kube.testing.faults import FaultRates
from tests.cluster.operator.support.harness import World, operating, successive_operators
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import Body, clique, small, workload
from tests.cluster.operator.support.world import GARBAGE

RBAC = (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, SECRETS)
NAMES = {
    SERVICE_ACCOUNTS: "wl",
    ROLES: "grove.io:pcs:wl",
    ROLE_BINDINGS: "grove.io:pcs:wl",
    SECRETS: "wl-ic-sat",
}
SLOW = GARBAGE
"""Kubernetes' controllers delete tokens and objects without an owner late."""


def ordered(replicas: int = 1, name: str = "wl") -> Body:
    body = workload(name, clique("first"), clique("second"), replicas=replicas)
    body["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeInOrder"
    return body


@pytest.fixture
async def world(world: World) -> World:
    """The test's namespace, with the objects for init containers watched too."""
    await world.watch(*RBAC)
    return world


def granted(world: World) -> bool:
    return all(world.find(resource, name) for resource, name in NAMES.items())


def creates(recorder: Recorder) -> Counter[str]:
    """How often each kind of these objects was created."""
    labels = {resource.label for resource in RBAC}
    writes = (call.request for call in recorder.calls if call.took_effect)
    return Counter(call.resource for call in writes if call.verb == "create" and call.resource in labels)


async def test_one_object_of_each_kind_for_a_set(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, ordered(replicas=3))
        await world.create(SETS, small("free"))
        await world.until_ready()
        await operator.recorder.until_quiet()
        assert creates(operator.recorder) == {resource.label: 1 for resource in RBAC}
        calls = len(operator.recorder.calls)
        await operator.recorder.until_quiet()
        assert len(operator.recorder.calls) == calls, "an idle operator sends no requests"
    assert {resource: world.names(resource, part_of="wl") for resource in RBAC} == {
        resource: [name] for resource, name in NAMES.items()
    }
    assert not any(world.names(resource, part_of="free") for resource in RBAC)


@pytest.mark.parametrize("resource", [ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS], ids=lambda found: found.kind)
async def test_deleted_object_is_created_again(world: World, resource: Resource) -> None:
    """The new object works: a pod that is created after that waits in its init container and starts."""
    async with operating(world):
        await world.create(SETS, ordered())
        await world.until_ready()
        before = world.get(resource, NAMES[resource]).uid
        await world.delete(resource, NAMES[resource])
        await world.until(
            lambda: (found := world.find(resource, NAMES[resource])) and found.uid != before,
            f"a new {resource.kind}",
        )
        (pod,) = world.pods(clique="wl-0-second")
        await world.delete(PODS, pod.name)
        await world.until(lambda: pod.uid not in {one.uid for one in world.all(PODS)})
        await world.until(world.all_ready, "the new pod ready", SLOW)


async def test_deleted_secret_is_created_with_next_pod(world: World) -> None:
    """Not before, since the operator may not watch Secrets."""
    async with operating(world):
        await world.create(SETS, ordered())
        await world.until_ready()
        await world.delete(SECRETS, "wl-ic-sat")
        (pod,) = world.pods(clique="wl-0-second")
        await world.delete(PODS, pod.name)
        await world.until(lambda: world.find(SECRETS, "wl-ic-sat"), "a new Secret")
        await world.until(lambda: pod.uid not in {one.uid for one in world.all(PODS)} and world.all_ready())


async def test_objects_are_deleted_with_the_set(world: World) -> None:
    async with operating(world):
        await world.create(SETS, ordered())
        await world.until_ready()
        await world.delete(SETS, "wl")
        await world.until(
            lambda: not any(world.all(resource, part_of="wl") for resource in RBAC), "nothing left", SLOW
        )


async def test_recreated_set_gets_its_own_objects(world: World) -> None:
    """The Secret of the old set may still exist: the new set does not use it."""
    async with operating(world):
        for _ in range(3):
            await world.create(SETS, ordered())
            await world.until(
                lambda: granted(world) and len(world.pods()) == 2 and world.all_ready(), "", SLOW
            )
            await world.delete(SETS, "wl")
            await world.until(lambda: not world.all(SETS) and not world.all(PODS), "the old set deleted")


async def test_new_set_waits_for_terminating_secret(world: World) -> None:
    hold = ["example.com/hold"]
    async with operating(world) as operator:
        await world.create(SETS, ordered())
        await world.until_ready()
        await world.patch(SECRETS, "wl-ic-sat", {"metadata": {"finalizers": hold}})
        await world.delete(SETS, "wl")
        await world.until(lambda: not world.all(SETS) and not world.all(PODS), "the old set deleted")
        await world.until(lambda: world.get(SECRETS, "wl-ic-sat").terminating, "its Secret terminating", SLOW)
        operator.recorder.calls.clear()
        await world.create(SETS, ordered())
        while not refused(operator.recorder):
            await operator.recorder.next_call()
        assert world.pods() == []
        await world.patch(SECRETS, "wl-ic-sat", {"metadata": {"finalizers": None}})
        await world.until(lambda: len(world.pods()) == 2 and world.all_ready(), "the new set ready", SLOW)


def refused(recorder: Recorder) -> bool:
    """Whether the create of a Secret was refused since its name is taken."""
    return any(call.request.resource == "secrets" and call.status == 409 for call in recorder.calls)


async def test_lost_replies_cause_no_second_create(world: World) -> None:
    async with operating(world, rates=FaultRates(lose=0.5), seed=1) as operator:
        await world.create(SETS, ordered(replicas=2))
        await world.until(world.all_ready, "everything ready", SLOW)
        assert creates(operator.recorder) == {resource.label: 1 for resource in RBAC}
        assert operator.faults.fault_counts["lose"] > 0


async def test_objects_complete_despite_operator_restarts(world: World) -> None:
    async with successive_operators(world, itertools.chain([1, 2, 3, 1, 1, 2, 4], itertools.repeat(5))):
        await world.create(SETS, ordered())
        await world.until(world.all_ready, "everything ready", SLOW)
    assert {resource: world.names(resource, part_of="wl") for resource in RBAC} == {
        resource: [name] for resource, name in NAMES.items()
    }


async def test_missing_init_image_is_reported_on_clique(world: World) -> None:
    async with operating(world, init_image="") as operator:
        await world.create(SETS, ordered())
        await world.create(SETS, small("free"))
        await world.until(lambda: world.get(SETS, "free").status.get("availableReplicas") == 1)
        await world.until(lambda: errors(world, "wl-0-second"))
        (error,) = errors(world, "wl-0-second")
        assert error["code"] == ErrorCode.INIT_IMAGE_MISSING
        assert "set GROVE_INIT_CONTAINER_IMAGE on the operator" in error["description"]
        await operator.recorder.until_quiet()
        assert world.pods(part_of="wl") == []
    async with operating(world):
        await world.until_ready()
        assert errors(world, "wl-0-second") == []


def errors(world: World, name: str) -> list[dict[str, Any]]:
    found = world.find(CLIQUES, name)
    return found.status.get("lastErrors", []) if found else []


async def test_name_conflict_is_reported_and_holds_one_set(world: World) -> None:
    """A foreign ServiceAccount of the same name is not adopted."""
    await world.create(SERVICE_ACCOUNTS, {"metadata": {"name": "wl"}})
    async with operating(world):
        await world.create(SETS, ordered())
        await world.create(SETS, small("free"))
        await world.until(lambda: world.get(SETS, "wl").status.get("lastErrors"))
        (error,) = world.get(SETS, "wl").status["lastErrors"]
        assert error["code"] == "ERR_CREATE_SERVICEACCOUNT"
        assert "delete that object or rename the workload" in error["description"]
        await world.until(lambda: world.get(SETS, "free").status.get("availableReplicas") == 1)
        assert world.pods(part_of="wl") == []
        await world.delete(SERVICE_ACCOUNTS, "wl")
        await world.until(world.all_ready, "the set ready", SLOW)


async def test_operator_only_creates_secrets(world: World) -> None:
    async with operating(world, rates=FaultRates(lose=0.1), seed=3) as operator:
        await world.create(SETS, ordered())
        await world.until(world.all_ready, "everything ready", SLOW)
        await world.delete(SETS, "wl")
        await world.until(
            lambda: not any(world.all(resource, part_of="wl") for resource in RBAC), "nothing left", SLOW
        )
        secret_calls = [call for call in operator.recorder.calls if call.request.resource == "secrets"]
        assert {call.request.verb for call in secret_calls} == {"create"}
        assert not [str(call) for call in operator.recorder.calls if call.status == 403]
