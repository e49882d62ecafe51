"""Topologies: what is planned for one that was deleted, and how failed writes are reported."""

from __future__ import annotations

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.intents import Delete
from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.caches.registry import Caches
from grove.operator.engine.errors import PassErrors
from grove.operator.engine.reconciler import PassResult
from grove.operator.keys import TopologyKey
from grove.operator.observers.topology_usage import TopologyUsageObserver
from grove.operator.reconcilers.topology import TopologyReconciler
from grove.schedulers.backend import SchedulerObject
from grove.schedulers.registry import backends

KEY = TopologyKey("racks")


@pytest.fixture
def orphaned() -> TopologyReconciler:
    """KAI's object of a topology that was deleted while no operator was running."""
    in_use = backends(Scheduler(profiles=(SchedulerProfile("kai-scheduler"),)))
    ((_, kind),) = in_use.topology_aware
    caches = Caches(scheduler_topologies=[kind])
    owner = OwnerReference("grove.io/v1alpha1", "ClusterTopology", "racks", "u", controller=True)
    meta = ObjectMeta(
        "racks", uid="k", labels={labels.MANAGED_BY: labels.OPERATOR}, owner_references=(owner,)
    )
    caches.scheduler_topologies[kind].replace([SchedulerObject(meta)], "1")
    return TopologyReconciler(caches, in_use, TopologyUsageObserver(caches))


async def test_object_of_deleted_topology_is_deleted(orphaned) -> None:
    snapshot = await orphaned.observe(KEY)
    assert [type(intent) for intent in orphaned.plan(snapshot, 0.0).intents] == [Delete]
    assert orphaned.about(snapshot) is None
    assert await orphaned.observe(TopologyKey("other")) is None


async def test_failed_delete_of_orphaned_object_has_no_status(orphaned) -> None:
    snapshot = await orphaned.observe(KEY)
    plan = orphaned.plan(snapshot, 0.0)
    outcome = Outcome(
        tuple(Result(each, IntentState.FAILED, error=ValueError("no")) for each in plan.intents)
    )
    result = PassResult(outcome, PassErrors(), False, frozenset())
    assert orphaned.with_errors(snapshot, plan, result, 0.0).status_updates == ()
