"""The end of a set: everything goes, whatever happens meanwhile; and nothing but what is the set's own."""

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
from grove.plan.deletion import OwnedObjects, plan_deletion
from tests.cluster.operator.scenarios.deletion import empty
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import PARTS, SETS
from tests.cluster.operator.support.workloads import small, upstream


async def test_a_set_deleted_while_nobody_operates_goes_when_somebody_does(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    await world.delete(SETS, "small")
    assert world.get(SETS, "small").terminating
    async with operating(world):
        await world.until(lambda: empty(world))


@pytest.mark.usefixtures("collector")
async def test_a_set_orphaned_while_nobody_operates_leaves_everything_behind(world: World) -> None:
    """By the time somebody does, the garbage collector has done its part, and only the set itself is left."""
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    before = {found.uid for part in PARTS for found in world.all(part)}
    await world.delete(SETS, "small", propagation="Orphan")
    await world.until(lambda: world.get(SETS, "small").metadata.finalizers == (well_known.SET_FINALIZER,))
    async with operating(world):
        await world.until(lambda: not world.all(SETS), "the set gone")
    assert {found.uid for part in PARTS for found in world.all(part)} == before
    assert not any(found.terminating for part in PARTS for found in world.all(part))


@pytest.mark.parametrize("writes", [1, 3, 5])
async def test_an_operator_that_ends_in_the_middle_of_a_deletion_is_relieved(
    world: World, writes: int
) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    async with operating(world, stop_after=writes) as mortal:
        await world.delete(SETS, "small")
        await mortal.stopped.wait()
    async with operating(world):
        await world.until(lambda: empty(world))


async def test_everything_goes_with_the_namespace(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload2"))
        await world.until_ready()
        await world.client.delete(NAMESPACES, world.namespace, as_type=Object)
        await world.until(lambda: empty(world), "an empty namespace", 120)
        await operator.recorder.silence()
        refused = operator.recorder.refused_creates()
        assert sorted(refused) == sorted(set(refused)), "nobody fights the end of a namespace"
        assert not operator.recorder.complaints()


async def test_the_finalizer_is_on_the_set_and_nowhere_else(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()
    assert world.get(SETS, "small").metadata.finalizers == (well_known.SET_FINALIZER,)
    assert not [found.name for part in PARTS for found in world.all(part) if found.metadata.finalizers]


async def test_who_learns_late_that_a_set_has_gone_spares_its_successor(world: World) -> None:
    """A leader that was replaced in the middle of a deletion still sees the old set with all its parts, and
    goes on deleting by names that are by now the new one's."""
    key = SetKey(world.namespace, "small")
    async with operating(world) as operator:
        await world.create(SETS, small())
        await world.until_ready()
        old = operator.manager.caches.sets.get(*key)
        assert old is not None
        owned_objects = Observer(operator.manager.caches).owned_objects(key)
        transport = HttpTransport(world.config)
        late = Executor(transport, operator.manager.caches.resources)
        await world.delete(SETS, "small")
        await world.until(lambda: empty(world))
        await world.create(SETS, small())
        await world.until_ready()
        before = {found.uid for kind in (SETS, *PARTS) for found in world.all(kind)}
        ending = replace(old, metadata=replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        for view in (owned_objects, replace(owned_objects, pods=()), OwnedObjects()):
            plan = plan_deletion(ending, view, time.time())
            outcome = await late.execute(plan.intents)
            assert plan.intents
            assert all(
                result.state in (IntentState.DONE, IntentState.CONFLICT, IntentState.SKIPPED)
                for result in outcome.results
            )
        assert {found.uid for kind in (SETS, *PARTS) for found in world.all(kind)} == before
        assert not any(found.terminating for kind in (SETS, *PARTS) for found in world.all(kind))
        await transport.close()
