"""Deletion of a set while no operator runs, while operators stop, and by a former leader."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from grove.api.naming import well_known
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES
from grove.kube.client.transport import HttpTransport
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import IntentState
from grove.operator.keys import SetKey
from grove.operator.observers.workload import Observer
from grove.plan.deletion import plan_deletion
from grove.plan.snapshot import OwnedObjects
from tests.cluster.operator.scenarios.deletion import empty
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import PARTS, SETS
from tests.cluster.operator.support.workloads import small, upstream


async def test_set_deleted_without_operator_goes_after_start(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    await world.delete(SETS, "small")
    assert world.get(SETS, "small").terminating
    async with operating(world):
        await world.until(lambda: empty(world))


@pytest.mark.usefixtures("garbage_collector")
async def test_set_orphaned_without_operator_keeps_its_objects(world: World) -> None:
    """When the operator starts, the garbage collector has removed the owner references, and only the set's
    own finalizer is left."""
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    before = {found.uid for part in PARTS for found in world.all(part)}
    await world.delete(SETS, "small", propagation="Orphan")
    await world.until(lambda: world.get(SETS, "small").metadata.finalizers == (well_known.SET_FINALIZER,))
    async with operating(world):
        await world.until(lambda: not world.all(SETS), "the set deleted")
    assert {found.uid for part in PARTS for found in world.all(part)} == before
    assert not any(found.terminating for part in PARTS for found in world.all(part))


@pytest.mark.parametrize("writes", [1, 3, 5])
async def test_next_operator_finishes_interrupted_deletion(world: World, writes: int) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    async with operating(world, stop_after=writes) as operator:
        await world.delete(SETS, "small")
        await operator.stopped.wait()
    async with operating(world):
        await world.until(lambda: empty(world))


async def test_namespace_deletion_causes_no_retries(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload2"))
        await world.until_ready()
        await world.client.delete(NAMESPACES, world.namespace, as_type=Object)
        await world.until(lambda: empty(world), "an empty namespace", 120)
        await operator.recorder.until_quiet()
        refused = operator.recorder.refused_creates()
        assert sorted(refused) == sorted(set(refused)), (
            "a refused create is not retried in a terminating namespace"
        )
        assert not operator.recorder.warnings()


async def test_finalizer_is_removed_with_one_write(world: World) -> None:
    """The event that the set is gone is late: the reply of the write has to suffice."""
    async with operating(world) as operator:
        await world.create(SETS, small())
        await world.until_ready()
        await operator.recorder.until_quiet()
        await world.delete(SETS, "small")
        cached = operator.manager.caches.sets.get(world.namespace, "small")
        while cached is None or not cached.metadata.deletion_timestamp:
            await operator.recorder.next_call()
            cached = operator.manager.caches.sets.get(world.namespace, "small")
        operator.faults.pause_watch(SETS.label)
        await world.until(lambda: empty(world))
        await operator.recorder.until_quiet()
        of_set = [call for call in operator.recorder.writes() if call.request.name == "small"]
        assert [call for call in of_set if call.status == 404] == []
        operator.faults.resume_watch(SETS.label)


async def test_only_the_set_has_a_finalizer(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    assert world.get(SETS, "small").metadata.finalizers == (well_known.SET_FINALIZER,)
    assert not [found.name for part in PARTS for found in world.all(part) if found.metadata.finalizers]


async def test_stale_deletion_spares_set_of_the_same_name(world: World) -> None:
    """A former leader, replaced in the middle of a deletion, still has the old set with all its objects in
    its caches, and sends deletes for names that objects of the new set have by now."""
    key = SetKey(world.namespace, "small")
    async with operating(world) as operator:
        await world.create(SETS, small())
        await world.until_ready()
        old = operator.manager.caches.sets.get(*key)
        assert old is not None
        owned_objects = Observer(operator.manager.caches).owned_objects(key)
        transport = HttpTransport(world.config)
        stale = Executor(transport, operator.manager.caches.resources)
        await world.delete(SETS, "small")
        await world.until(lambda: empty(world))
        await world.create(SETS, small())
        await world.until_ready()
        before = {found.uid for kind in (SETS, *PARTS) for found in world.all(kind)}
        ending = replace(old, metadata=replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        for view in (owned_objects, replace(owned_objects, pods=()), OwnedObjects()):
            plan = plan_deletion(ending, view, time.time())
            outcome = await stale.execute(plan.intents)
            assert plan.intents
            assert all(
                result.state in (IntentState.DONE, IntentState.CONFLICT, IntentState.SKIPPED)
                for result in outcome.results
            )
        assert {found.uid for kind in (SETS, *PARTS) for found in world.all(kind)} == before
        assert not any(found.terminating for kind in (SETS, *PARTS) for found in world.all(kind))
        await transport.close()
