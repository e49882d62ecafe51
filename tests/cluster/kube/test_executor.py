"""Plans on a real API server: what it stores, what it refuses, and what the cache knows afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from grove.api.intents import (
    Create,
    Delete,
    DeleteCollection,
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
from tests.cluster.kube.executor_harness import Bench, ConfigMap

pytestmark = pytest.mark.cluster


@pytest.fixture
async def bench(client: Client, namespace: str) -> AsyncIterator[Bench]:
    bench = Bench(client, namespace)
    seen = Client(bench.faults)
    watches = [asyncio.create_task(Reflector(seen, cache).run()) for cache in (bench.maps, bench.pods)]
    await asyncio.gather(bench.maps.synced.wait(), bench.pods.synced.wait())
    yield bench
    for watch in watches:
        watch.cancel()
    await asyncio.wait(watches)


@pytest.fixture
async def parent(bench: Bench) -> str:
    """The UID of an object named `parent` that can own others."""
    outcome = await bench.execute(bench.map("parent"))
    return outcome.results[0].uid


def states(outcome: Outcome) -> list[IntentState]:
    return [result.state for result in outcome.results]


async def test_a_whole_family_is_made_in_one_go_with_names_from_the_parents_uid(bench: Bench) -> None:
    def member(uid: str, index: int) -> str:
        return f"{uid[:8]}-{index}"

    parent = bench.map("parent")
    names = [derived(member, uid_of(parent), index) for index in range(3)]
    ledger = Create(
        bench.target("ledger"),
        {"metadata": {"name": "ledger", "labels": {"app": "test"}}, "data": {"first": names[0]}},
        (parent.id,),
    )
    children = [bench.map(name, parent, ledger, owner=uid_of(parent)) for name in names]
    outcome = await bench.execute(parent, ledger, *children)
    assert states(outcome) == [IntentState.DONE] * 5
    uid = outcome.result_of(parent).uid
    assert (await bench.stored("ledger")).data == {"first": f"{uid[:8]}-0"}
    for index, child in enumerate(children):
        stored = await bench.stored(f"{uid[:8]}-{index}")
        assert stored.metadata.owner_references[0].uid == uid
        assert outcome.result_of(child).uid == stored.metadata.uid
        assert bench.maps.get(bench.namespace, stored.metadata.name) == stored


async def test_the_reply_is_in_the_cache_before_the_watch_tells(bench: Bench) -> None:
    """On a cache that no watch ever reaches, only the replies can have brought it up to date."""
    lonely = Cache(CONFIG_MAPS, ConfigMap, namespace=bench.namespace, labels={"app": "test"})
    executor = Executor(bench.client.transport, [CONFIG_MAPS], store=CacheStore([lonely]))
    create = bench.map("a")
    await executor.execute([create, Patch(create.target, {"data": {"k": "v"}}, after=(create.id,))])
    known = lonely.get(bench.namespace, "a")
    assert known is not None
    assert known.data == {"k": "v"}
    await executor.execute([Delete(create.target, uid=known.metadata.uid)])
    assert lonely.get(bench.namespace, "a") is None


async def test_a_name_that_is_ours_already_is_found(bench: Bench, parent: str) -> None:
    bench.faults.pause_watch(CONFIG_MAPS.label)
    await bench.client.create(
        CONFIG_MAPS, bench.map("child", owner=parent).body, namespace=bench.namespace, as_type=ConfigMap
    )
    child = bench.map("child", owner=parent)
    outcome = await bench.execute(child, bench.map("grandchild", child))
    assert states(outcome) == [IntentState.FOUND, IntentState.SKIPPED]
    assert outcome.outdated
    assert not outcome.failed
    assert bench.maps.get(bench.namespace, "child") is not None
    assert outcome.result_of(child).existing.metadata.uid == outcome.result_of(child).uid


async def test_ours_without_its_labels_is_found_though_no_cache_selects_it(bench: Bench, parent: str) -> None:
    body = bench.map("child", owner=parent, labels={"app": "stripped"}).body
    await bench.client.create(CONFIG_MAPS, body, namespace=bench.namespace, as_type=ConfigMap)
    outcome = await bench.execute(bench.map("child", owner=parent))
    assert states(outcome) == [IntentState.FOUND]
    assert bench.maps.get(bench.namespace, "child") is None
    assert outcome.results[0].existing.metadata.labels == {"app": "stripped"}


async def test_a_terminating_object_of_ours_is_waited_for(bench: Bench, parent: str) -> None:
    held = bench.map("child", owner=parent, finalizers=["example.com/hold"])
    first = (await bench.execute(held)).results[0].uid
    await bench.execute(Delete(held.target, uid=first))
    known = bench.maps.get(bench.namespace, "child")
    assert known is not None
    assert known.metadata.deletion_timestamp  # answered with an object: terminating, not gone
    assert states(await bench.execute(bench.map("child", owner=parent))) == [IntentState.WAITING]
    await bench.client.patch(
        CONFIG_MAPS,
        "child",
        {"metadata": {"finalizers": None}},
        namespace=bench.namespace,
        as_type=ConfigMap,
    )
    await bench.until_deleted("child")
    outcome = await bench.execute(bench.map("child", owner=parent))
    assert states(outcome) == [IntentState.DONE]
    assert outcome.results[0].uid != first


async def test_a_child_of_the_parents_earlier_life_is_waited_for(bench: Bench, parent: str) -> None:
    earlier = "00000000-0000-0000-0000-000000000001"
    # The finalizer keeps the garbage collector from being faster than this test.
    await bench.execute(bench.map("child", owner=earlier, finalizers=["example.com/hold"]))
    assert states(await bench.execute(bench.map("child", owner=parent))) == [IntentState.WAITING]
    await bench.client.patch(
        CONFIG_MAPS,
        "child",
        {"metadata": {"finalizers": None}},
        namespace=bench.namespace,
        as_type=ConfigMap,
    )
    await bench.until_deleted("child")  # the garbage collector took it
    assert states(await bench.execute(bench.map("child", owner=parent))) == [IntentState.DONE]


async def test_a_name_of_somebody_else_is_a_conflict_and_left_alone(bench: Bench, parent: str) -> None:
    body = {"metadata": {"name": "child"}, "data": {"mine": "yes"}}
    await bench.client.create(CONFIG_MAPS, body, namespace=bench.namespace, as_type=ConfigMap)
    outcome = await bench.execute(bench.map("child", owner=parent))
    assert states(outcome) == [IntentState.FAILED]
    assert isinstance(outcome.errors[0], NameConflict)
    assert (await bench.stored("child")).data == {"mine": "yes"}


async def test_a_create_whose_reply_was_lost_is_found_and_not_made_twice(bench: Bench, parent: str) -> None:
    bench.faults.inject("lose", verb="create")
    outcome = await bench.execute(bench.map("child", owner=parent))
    assert states(outcome) == [IntentState.FOUND]
    assert outcome.results[0].uid == (await bench.stored("child")).metadata.uid
    assert bench.maps.get(bench.namespace, "child") is not None


async def test_a_patch_whose_reply_was_lost_leaves_the_cache_up_to_date(bench: Bench, parent: str) -> None:
    bench.faults.pause_watch(CONFIG_MAPS.label)
    bench.faults.inject("lose", verb="patch")
    outcome = await bench.execute(Patch(bench.target("parent"), {"data": {"k": "v"}}))
    assert states(outcome) == [IntentState.FAILED]
    assert isinstance(outcome.errors[0], LostReply)
    known = bench.maps.get(bench.namespace, "parent")
    assert known is not None
    assert known.data == {"k": "v"}


async def test_a_delete_whose_reply_was_lost_is_seen_to_be_done(bench: Bench, parent: str) -> None:
    bench.faults.inject("lose", verb="delete")
    assert states(await bench.execute(Delete(bench.target("parent"), uid=parent))) == [IntentState.DONE]


async def test_a_changed_object_is_a_conflict_that_skips_what_depends_on_it(
    bench: Bench, parent: str
) -> None:
    bench.faults.pause_watch(CONFIG_MAPS.label)
    seen = await bench.stored("parent")
    await bench.client.patch(
        CONFIG_MAPS, "parent", {"data": {"by": "other"}}, namespace=bench.namespace, as_type=ConfigMap
    )
    stale = {"metadata": {"resourceVersion": seen.metadata.resource_version}, "data": {"by": "us"}}
    ledger = Patch(bench.target("parent"), stale)
    outcome = await bench.execute(ledger, bench.map("child", ledger))
    assert states(outcome) == [IntentState.CONFLICT, IntentState.SKIPPED]
    assert isinstance(outcome.result_of(ledger).error, Conflict)
    known = bench.maps.get(bench.namespace, "parent")
    assert known is not None
    assert known.data == {"by": "other"}
    with pytest.raises(NotFound):
        await bench.stored("child")


async def test_another_life_of_a_victim_is_not_deleted(bench: Bench, parent: str) -> None:
    outcome = await bench.execute(Delete(bench.target("parent"), uid="00000000-0000-0000-0000-000000000001"))
    assert states(outcome) == [IntentState.CONFLICT]
    assert (await bench.stored("parent")).metadata.uid == parent


async def test_deleting_what_is_not_there_is_done(bench: Bench) -> None:
    assert states(await bench.execute(Delete(bench.target("nobody")))) == [IntentState.DONE]


async def test_patching_what_is_not_there_means_that_the_view_was_old(bench: Bench) -> None:
    outcome = await bench.execute(Patch(bench.target("nobody"), {"data": {"k": "v"}}))
    assert states(outcome) == [IntentState.CONFLICT]


async def test_a_labelled_collection_is_deleted_in_one_call(bench: Bench) -> None:
    await bench.execute(*[bench.map(f"m{index}") for index in range(5)])
    before = bench.faults.writes
    outcome = await bench.execute(DeleteCollection("v1", "ConfigMap", bench.namespace, "app=test"))
    assert states(outcome) == [IntentState.DONE]
    assert bench.faults.writes == before + 1
    for index in range(5):
        await bench.until_deleted(f"m{index}")


async def test_declared_objects_are_made_and_patched_by_apply_and_json_patch(bench: Bench) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    declare = Patch(bench.target("a"), body, PatchType.APPLY)
    change = [{"op": "replace", "path": "/data/k", "value": "2"}]
    assert states(await bench.execute(declare)) == [IntentState.DONE]
    assert states(await bench.execute(Patch(bench.target("a"), change, PatchType.JSON))) == [IntentState.DONE]
    assert (await bench.stored("a")).data == {"k": "2"}


async def test_status_is_written_to_its_subresource(bench: Bench) -> None:
    pod = Create(
        bench.target("p", "Pod"),
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "none"},
        },
    )
    told = Status(pod.target, {"status": {"message": "told"}}, after=(pod.id,))
    assert states(await bench.execute(pod, told)) == [IntentState.DONE, IntentState.DONE]
    stored = await bench.client.get(PODS, "p", namespace=bench.namespace, as_type=dict)
    assert stored["status"]["message"] == "told"


@pytest.mark.parametrize(
    ("kind", "name", "elsewhere", "error"),
    [
        ("ConfigMap", "Not A Name", None, Invalid),
        ("ConfigMap", "a", "no-such-namespace", NotFound),
        ("Teapot", "a", None, NotFound),
    ],
)
async def test_what_the_server_refuses_fails_with_its_words(
    bench: Bench, kind: str, name: str, elsewhere: str | None, error: type[KubeError]
) -> None:
    api_version = "example.com/v1" if kind == "Teapot" else "v1"
    target = Target(api_version, kind, name, elsewhere or bench.namespace)
    outcome = await bench.execute(Create(target, {"metadata": {"name": name}}))
    assert states(outcome) == [IntentState.FAILED]
    assert isinstance(outcome.errors[0], error)
    assert "\n" not in str(outcome.errors[0])


async def test_a_hundred_independent_creates_cost_a_hundred_calls(bench: Bench) -> None:
    outcome = await bench.execute(*[bench.map(f"m{index}") for index in range(100)])
    assert set(states(outcome)) == {IntentState.DONE}
    assert bench.faults.writes == 100
    assert len(bench.maps) == 100
