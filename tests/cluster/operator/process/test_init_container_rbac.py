"""What init containers need to look at pods: made once a set, only where it is needed, mended, and gone."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from grove.kube.client.resource import PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, Resource
from grove.kube.testing.faults import FaultRates
from grove.plan.gang.startup_dependencies import NO_IMAGE
from tests.cluster.operator.support.harness import World, operating, successive_operators
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import Body, clique, small, workload
from tests.cluster.operator.support.world import GARBAGE

GRANTS = (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, SECRETS)
NAMES = {
    SERVICE_ACCOUNTS: "wl",
    ROLES: "grove.io:pcs:wl",
    ROLE_BINDINGS: "grove.io:pcs:wl",
    SECRETS: "wl-ic-sat",
}
SLOW = GARBAGE
"""Kubernetes removes tokens and what has no owner in its own time."""


def ordered(replicas: int = 1, name: str = "wl") -> Body:
    body = workload(name, clique("first"), clique("second"), replicas=replicas)
    body["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeInOrder"
    return body


@pytest.fixture
async def world(world: World) -> World:
    """With an eye on what is made for init containers."""
    await world.watch(*GRANTS)
    return world


def granted(world: World) -> bool:
    return all(world.find(resource, name) for resource, name in NAMES.items())


def made(recorder: Recorder) -> Counter[str]:
    """How often each of them was made."""
    labels = {resource.label for resource in GRANTS}
    writes = (call.request for call in recorder.calls if call.took_effect)
    return Counter(call.resource for call in writes if call.verb == "create" and call.resource in labels)


async def test_one_of_each_for_a_set_whatever_its_size(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, ordered(replicas=3))
        await world.create(SETS, small("free"))
        await world.until_ready()
        await operator.recorder.silence()
        assert made(operator.recorder) == {resource.label: 1 for resource in GRANTS}
        calls = len(operator.recorder.calls)
        await operator.recorder.silence()
        assert len(operator.recorder.calls) == calls, "nothing to do, nothing asked"
    assert {resource: world.names(resource, part_of="wl") for resource in GRANTS} == {
        resource: [name] for resource, name in NAMES.items()
    }
    assert not any(world.names(resource, part_of="free") for resource in GRANTS)


@pytest.mark.parametrize("resource", [ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS], ids=lambda found: found.kind)
async def test_what_is_deleted_by_hand_comes_back(world: World, resource: Resource) -> None:
    """And works: a pod that comes back after that waits, sees and starts."""
    async with operating(world):
        await world.create(SETS, ordered())
        await world.until_ready()
        before = world.get(resource, NAMES[resource]).uid
        await world.delete(resource, NAMES[resource])
        await world.until(
            lambda: (found := world.find(resource, NAMES[resource])) and found.uid != before,
            f"the {resource.kind} made again",
        )
        (pod,) = world.pods(clique="wl-0-second")
        await world.delete(PODS, pod.name)
        await world.until(lambda: pod.uid not in {one.uid for one in world.all(PODS)})
        await world.until(world.whole, "the pod back and ready", SLOW)


async def test_a_secret_that_was_deleted_comes_back_with_the_next_pod(world: World) -> None:
    """Nobody tells the operator: it may not look at Secrets."""
    async with operating(world):
        await world.create(SETS, ordered())
        await world.until_ready()
        await world.delete(SECRETS, "wl-ic-sat")
        (pod,) = world.pods(clique="wl-0-second")
        await world.delete(PODS, pod.name)
        await world.until(lambda: world.find(SECRETS, "wl-ic-sat"), "the Secret made again")
        await world.until(lambda: pod.uid not in {one.uid for one in world.all(PODS)} and world.whole())


async def test_all_of_it_goes_with_the_set(world: World) -> None:
    async with operating(world):
        await world.create(SETS, ordered())
        await world.until_ready()
        await world.delete(SETS, "wl")
        await world.until(
            lambda: not any(world.all(resource, part_of="wl") for resource in GRANTS), "nothing left", SLOW
        )


async def test_the_same_set_again_at_once_gets_its_own(world: World) -> None:
    """The Secret of the old one may still be there: it is not taken for the new one's."""
    async with operating(world):
        for _ in range(3):
            await world.create(SETS, ordered())
            await world.until(lambda: granted(world) and len(world.pods()) == 2 and world.whole(), "", SLOW)
            await world.delete(SETS, "wl")
            await world.until(lambda: not world.all(SETS) and not world.all(PODS), "the old set gone")


async def test_a_secret_that_is_on_its_way_out_is_not_taken_for_ours(world: World) -> None:
    hold = ["example.com/hold"]
    async with operating(world) as operator:
        await world.create(SETS, ordered())
        await world.until_ready()
        await world.patch(SECRETS, "wl-ic-sat", {"metadata": {"finalizers": hold}})
        await world.delete(SETS, "wl")
        await world.until(lambda: not world.all(SETS) and not world.all(PODS), "the old set gone")
        await world.until(lambda: world.get(SECRETS, "wl-ic-sat").terminating, "its Secret leaving", SLOW)
        operator.recorder.calls.clear()
        await world.create(SETS, ordered())
        while not refused(operator.recorder):
            await operator.recorder.next_call()
        assert world.pods() == []
        await world.patch(SECRETS, "wl-ic-sat", {"metadata": {"finalizers": None}})
        await world.until(lambda: len(world.pods()) == 2 and world.whole(), "the new set ready", SLOW)


def refused(recorder: Recorder) -> bool:
    """Whether a Secret was in the way."""
    return any(call.request.resource == "secrets" and call.status == 409 for call in recorder.calls)


async def test_lost_replies_cost_time_and_nothing_else(world: World) -> None:
    async with operating(world, rates=FaultRates(lose=0.5), seed=1) as operator:
        await world.create(SETS, ordered(replicas=2))
        await world.until(world.whole, "everything ready", SLOW)
        assert made(operator.recorder) == {resource.label: 1 for resource in GRANTS}
        assert operator.faults.fault_counts["lose"] > 0


async def test_operators_that_end_after_every_few_writes_are_relieved(world: World) -> None:
    async with successive_operators(world, itertools.chain([1, 2, 3, 1, 1, 2, 4], itertools.repeat(5))):
        await world.create(SETS, ordered())
        await world.until(world.whole, "everything ready", SLOW)
    assert {resource: world.names(resource, part_of="wl") for resource in GRANTS} == {
        resource: [name] for resource, name in NAMES.items()
    }


async def test_without_an_image_nothing_is_begun_and_the_clique_says_what_to_set(world: World) -> None:
    async with operating(world, init_image="") as operator:
        await world.create(SETS, ordered())
        await world.create(SETS, small("free"))
        await world.until(lambda: world.get(SETS, "free").status.get("availableReplicas") == 1)
        await world.until(lambda: errors(world, "wl-0-second"))
        (error,) = errors(world, "wl-0-second")
        assert error["code"] == NO_IMAGE
        assert "set GROVE_INIT_CONTAINER_IMAGE on the operator" in error["description"]
        await operator.recorder.silence()
        assert world.pods(part_of="wl") == []
    async with operating(world):
        await world.until_ready()
        assert errors(world, "wl-0-second") == []


def errors(world: World, name: str) -> list[dict[str, Any]]:
    found = world.find(CLIQUES, name)
    return found.status.get("lastErrors", []) if found else []


async def test_a_name_that_is_taken_is_told_and_holds_up_this_set_alone(world: World) -> None:
    """Somebody's own ServiceAccount is not taken from them."""
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
        await world.until(world.whole, "the set goes on", SLOW)


async def test_an_operator_that_may_only_make_secrets_is_enough(world: World) -> None:
    async with operating(world, rates=FaultRates(lose=0.1), seed=3) as operator:
        await world.create(SETS, ordered())
        await world.until(world.whole, "everything ready", SLOW)
        await world.delete(SETS, "wl")
        await world.until(
            lambda: not any(world.all(resource, part_of="wl") for resource in GRANTS), "nothing left", SLOW
        )
        looked = [call for call in operator.recorder.calls if call.request.resource == "secrets"]
        assert {call.request.verb for call in looked} == {"create"}
        assert not [str(call) for call in operator.recorder.calls if call.status == 403]
