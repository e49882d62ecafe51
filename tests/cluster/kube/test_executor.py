"""Plans on a real API server: stored objects, rejected writes, and the cache afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from grove.api.intents import (
    Create,
    Delete,
    Patch,
    PatchType,
    Status,
    Target,
    derived,
    uid_of,
)
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS, PODS
from grove.kube.errors import Conflict, Invalid, KubeError, LostReply, NotFound
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.kube.executor.name_conflict import NameConflict
from grove.kube.executor.outcome import IntentState, Outcome
from tests.cluster.kube.executor_harness import ConfigMap, ExecutorHarness

pytestmark = pytest.mark.cluster


@pytest.fixture
async def harness(client: Client, namespace: str) -> AsyncIterator[ExecutorHarness]:
    harness = ExecutorHarness(client, namespace)
    seen = Client(harness.faults)
    watches = [asyncio.create_task(Reflector(seen, cache).run()) for cache in (harness.maps, harness.pods)]
    await asyncio.gather(harness.maps.synced.wait(), harness.pods.synced.wait())
    yield harness
    for watch in watches:
        watch.cancel()
    await asyncio.wait(watches)


@pytest.fixture
async def parent(harness: ExecutorHarness) -> str:
    """The UID of an object named `parent` that can own others."""
    outcome = await harness.execute(harness.map("parent"))
    return outcome.results[0].uid


def states(outcome: Outcome) -> list[IntentState]:
    return [result.state for result in outcome.results]


async def test_owner_and_children_are_created_in_one_plan(harness: ExecutorHarness) -> None:
    def member(uid: str, index: int) -> str:
        return f"{uid[:8]}-{index}"

    parent = harness.map("parent")
    names = [derived(member, uid_of(parent), index) for index in range(3)]
    members = Create(
        harness.target("members"),
        {"metadata": {"name": "members", "labels": {"app": "test"}}, "data": {"first": names[0]}},
        (parent.id,),
    )
    children = [harness.map(name, parent, members, owner=uid_of(parent)) for name in names]
    outcome = await harness.execute(parent, members, *children)
    assert states(outcome) == [IntentState.DONE] * 5
    uid = outcome.results[0].uid
    assert (await harness.stored("members")).data == {"first": f"{uid[:8]}-0"}
    for index, created in enumerate(outcome.results[2:]):
        stored = await harness.stored(f"{uid[:8]}-{index}")
        assert stored.metadata.owner_references[0].uid == uid
        assert created.uid == stored.metadata.uid
        assert harness.maps.get(harness.namespace, stored.metadata.name) == stored


async def test_reply_is_cached_before_the_watch_event(harness: ExecutorHarness) -> None:
    """The cache has no watch, so only the replies can have updated it."""
    unwatched = Cache(CONFIG_MAPS, ConfigMap, namespace=harness.namespace, labels={"app": "test"})
    executor = Executor(harness.client.transport, [CONFIG_MAPS], store=CacheStore([unwatched]))
    create = harness.map("a")
    await executor.execute([create, Patch(create.target, {"data": {"k": "v"}}, after=(create.id,))])
    known = unwatched.get(harness.namespace, "a")
    assert known is not None
    assert known.data == {"k": "v"}
    await executor.execute([Delete(create.target, uid=known.metadata.uid)])
    assert unwatched.get(harness.namespace, "a") is None


async def test_create_of_existing_own_object_is_found(harness: ExecutorHarness, parent: str) -> None:
    harness.faults.pause_watch(CONFIG_MAPS.label)
    await harness.client.create(
        CONFIG_MAPS, harness.map("child", owner=parent).body, namespace=harness.namespace, as_type=ConfigMap
    )
    child = harness.map("child", owner=parent)
    outcome = await harness.execute(child, harness.map("grandchild", child))
    assert states(outcome) == [IntentState.FOUND, IntentState.SKIPPED]
    assert outcome.outdated
    assert not outcome.failed
    assert harness.maps.get(harness.namespace, "child") is not None
    found = outcome.results[0]
    assert found.existing.metadata.uid == found.uid


async def test_own_object_without_labels_is_found(harness: ExecutorHarness, parent: str) -> None:
    body = harness.map("child", owner=parent, labels={"app": "stripped"}).body
    await harness.client.create(CONFIG_MAPS, body, namespace=harness.namespace, as_type=ConfigMap)
    outcome = await harness.execute(harness.map("child", owner=parent))
    assert states(outcome) == [IntentState.FOUND]
    assert harness.maps.get(harness.namespace, "child") is None
    assert outcome.results[0].existing.metadata.labels == {"app": "stripped"}


async def test_create_waits_for_own_terminating_object(harness: ExecutorHarness, parent: str) -> None:
    held = harness.map("child", owner=parent, finalizers=["example.com/hold"])
    first = (await harness.execute(held)).results[0].uid
    await harness.execute(Delete(held.target, uid=first))
    known = harness.maps.get(harness.namespace, "child")
    assert known is not None
    assert known.metadata.deletion_timestamp  # answered with an object: terminating, not gone
    assert states(await harness.execute(harness.map("child", owner=parent))) == [IntentState.WAITING]
    await harness.client.patch(
        CONFIG_MAPS,
        "child",
        {"metadata": {"finalizers": None}},
        namespace=harness.namespace,
        as_type=ConfigMap,
    )
    await harness.until_deleted("child")
    outcome = await harness.execute(harness.map("child", owner=parent))
    assert states(outcome) == [IntentState.DONE]
    assert outcome.results[0].uid != first


async def test_create_waits_for_child_of_deleted_parent(harness: ExecutorHarness, parent: str) -> None:
    deleted_parent = "00000000-0000-0000-0000-000000000001"
    # The finalizer keeps the object until the garbage collector and this test have seen it.
    await harness.execute(harness.map("child", owner=deleted_parent, finalizers=["example.com/hold"]))
    assert states(await harness.execute(harness.map("child", owner=parent))) == [IntentState.WAITING]
    await harness.client.patch(
        CONFIG_MAPS,
        "child",
        {"metadata": {"finalizers": None}},
        namespace=harness.namespace,
        as_type=ConfigMap,
    )
    await harness.until_deleted("child")  # by the garbage collector
    assert states(await harness.execute(harness.map("child", owner=parent))) == [IntentState.DONE]


async def test_object_of_other_owner_is_a_name_conflict(harness: ExecutorHarness, parent: str) -> None:
    body = {"metadata": {"name": "child"}, "data": {"mine": "yes"}}
    await harness.client.create(CONFIG_MAPS, body, namespace=harness.namespace, as_type=ConfigMap)
    outcome = await harness.execute(harness.map("child", owner=parent))
    assert states(outcome) == [IntentState.FAILED]
    assert isinstance(outcome.errors[0], NameConflict)
    assert (await harness.stored("child")).data == {"mine": "yes"}


async def test_create_with_lost_reply_is_found(harness: ExecutorHarness, parent: str) -> None:
    harness.faults.inject("lose", verb="create")
    outcome = await harness.execute(harness.map("child", owner=parent))
    assert states(outcome) == [IntentState.FOUND]
    assert outcome.results[0].uid == (await harness.stored("child")).metadata.uid
    assert harness.maps.get(harness.namespace, "child") is not None


async def test_patch_with_lost_reply_updates_the_cache(harness: ExecutorHarness, parent: str) -> None:
    harness.faults.pause_watch(CONFIG_MAPS.label)
    harness.faults.inject("lose", verb="patch")
    outcome = await harness.execute(Patch(harness.target("parent"), {"data": {"k": "v"}}))
    assert states(outcome) == [IntentState.FAILED]
    assert isinstance(outcome.errors[0], LostReply)
    known = harness.maps.get(harness.namespace, "parent")
    assert known is not None
    assert known.data == {"k": "v"}


async def test_delete_with_lost_reply_is_done(harness: ExecutorHarness, parent: str) -> None:
    harness.faults.inject("lose", verb="delete")
    assert states(await harness.execute(Delete(harness.target("parent"), uid=parent))) == [IntentState.DONE]


async def test_changed_object_is_a_conflict_and_skips_dependents(
    harness: ExecutorHarness, parent: str
) -> None:
    harness.faults.pause_watch(CONFIG_MAPS.label)
    seen = await harness.stored("parent")
    await harness.client.patch(
        CONFIG_MAPS, "parent", {"data": {"by": "other"}}, namespace=harness.namespace, as_type=ConfigMap
    )
    stale = {"metadata": {"resourceVersion": seen.metadata.resource_version}, "data": {"by": "us"}}
    members = Patch(harness.target("parent"), stale)
    outcome = await harness.execute(members, harness.map("child", members))
    assert states(outcome) == [IntentState.CONFLICT, IntentState.SKIPPED]
    assert isinstance(outcome.results[0].error, Conflict)
    known = harness.maps.get(harness.namespace, "parent")
    assert known is not None
    assert known.data == {"by": "other"}
    with pytest.raises(NotFound):
        await harness.stored("child")


async def test_object_with_other_uid_is_not_deleted(harness: ExecutorHarness, parent: str) -> None:
    outcome = await harness.execute(
        Delete(harness.target("parent"), uid="00000000-0000-0000-0000-000000000001")
    )
    assert states(outcome) == [IntentState.CONFLICT]
    assert (await harness.stored("parent")).metadata.uid == parent


async def test_delete_of_missing_object_is_done(harness: ExecutorHarness) -> None:
    assert states(await harness.execute(Delete(harness.target("missing")))) == [IntentState.DONE]


async def test_patch_of_missing_object_is_a_conflict(harness: ExecutorHarness) -> None:
    outcome = await harness.execute(Patch(harness.target("missing"), {"data": {"k": "v"}}))
    assert states(outcome) == [IntentState.CONFLICT]


async def test_json_patch_changes_the_object(harness: ExecutorHarness, parent: str) -> None:
    change = [{"op": "add", "path": "/data", "value": {"k": "2"}}]
    outcome = await harness.execute(Patch(harness.target("parent"), change, PatchType.JSON))
    assert states(outcome) == [IntentState.DONE]
    assert (await harness.stored("parent")).data == {"k": "2"}


async def test_status_is_written_to_its_subresource(harness: ExecutorHarness) -> None:
    pod = Create(
        harness.target("p", "Pod"),
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "none"},
        },
    )
    status = Status(pod.target, {"status": {"message": "written"}}, after=(pod.id,))
    assert states(await harness.execute(pod, status)) == [IntentState.DONE, IntentState.DONE]
    stored = await harness.client.get(PODS, "p", namespace=harness.namespace, as_type=dict)
    assert stored["status"]["message"] == "written"


@pytest.mark.parametrize(
    ("kind", "name", "elsewhere", "error"),
    [
        ("ConfigMap", "Not A Name", None, Invalid),
        ("ConfigMap", "a", "no-such-namespace", NotFound),
        ("Teapot", "a", None, NotFound),
    ],
)
async def test_rejected_create_fails_with_error_of_server(
    harness: ExecutorHarness, kind: str, name: str, elsewhere: str | None, error: type[KubeError]
) -> None:
    api_version = "example.com/v1" if kind == "Teapot" else "v1"
    target = Target(api_version, kind, name, elsewhere or harness.namespace)
    outcome = await harness.execute(Create(target, {"metadata": {"name": name}}))
    assert states(outcome) == [IntentState.FAILED]
    assert isinstance(outcome.errors[0], error)
    assert "\n" not in str(outcome.errors[0])


async def test_hundred_creates_are_hundred_calls(harness: ExecutorHarness) -> None:
    outcome = await harness.execute(*[harness.map(f"m{index}") for index in range(100)])
    assert set(states(outcome)) == {IntentState.DONE}
    assert harness.faults.writes == 100
    assert len(harness.maps) == 100
