"""When a quota has room again, and which keys that wakes."""

from __future__ import annotations

import asyncio

import pytest

from grove.api.intents import Create, Target
from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import ResourceQuota, ResourceQuotaStatus
from grove.kube.cache.cache import Cache
from grove.kube.client.resource import RESOURCE_QUOTAS
from grove.kube.errors import ApiStatus, Forbidden
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.kube.testing.virtual_time import virtual_time
from grove.kube.workqueue.queue import WorkQueue
from grove.operator.engine.api_error_log import ApiErrorLog
from grove.operator.keys import Key, ReplicaKey
from grove.operator.watches.quotas import QuotaWatch, freed

KEY = ReplicaKey("n", "greedy", 0)


def quota(version: int, hard: str = "4", used: str = "4", namespace: str = "n") -> ResourceQuota:
    metadata = ObjectMeta(name="few", namespace=namespace, uid="u", resource_version=str(version))
    return ResourceQuota(metadata, ResourceQuotaStatus({"pods": hard}, {"pods": used}))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"pods": "4"}, {"pods": "3"}, True),
        ({"pods": "3"}, {"pods": "4"}, False),
        ({"pods": "4"}, {"pods": "4"}, False),
        ({"cpu": "1"}, {"cpu": "500m"}, True),
        ({"cpu": "1"}, {"cpu": "1000m"}, False),
        ({"memory": "1Gi", "pods": "2"}, {"memory": "1025Mi", "pods": "1"}, True),
        ({"pods": "4"}, {}, True),
        ({}, {"pods": "4"}, False),
        ({"pods": "many"}, {"pods": "4"}, False),
    ],
)
def test_a_quota_has_room_if_less_is_used(
    before: dict[str, str], after: dict[str, str], expected: bool
) -> None:
    old, new = (ResourceQuota(ObjectMeta(), ResourceQuotaStatus({}, used)) for used in (before, after))
    assert freed(old, new) == expected


def refused(message: str) -> Outcome:
    about = Target("v1", "Pod", "greedy-0-a-xyz", "n")
    owner = {"kind": "PodClique", "name": "greedy-0-a"}
    intent = Create(about, {"metadata": {"ownerReferences": [owner]}})
    error = Forbidden("create pods n", ApiStatus(code=403, reason="Forbidden", message=message))
    return Outcome((Result(intent, IntentState.FAILED, "greedy-0-a-xyz", error=error),))


class Stage:
    """A quota that one key was refused by, and what the queue works on."""

    def __init__(self, message: str = "exceeded quota: few") -> None:
        self.worked: list[float] = []
        self.quotas: Cache[ResourceQuota] = Cache(RESOURCE_QUOTAS, ResourceQuota)
        self.refusals = ApiErrorLog()
        self.queue: WorkQueue[Key] = WorkQueue("test", self._work)
        QuotaWatch(self.quotas, self.refusals, self.queue)
        self.quotas.apply_event("ADDED", quota(1))
        self.refusals.record(KEY, refused(message))
        self.queue.start()

    async def _work(self, key: Key) -> None:
        assert key == KEY
        self.worked.append(asyncio.get_running_loop().time())

    async def see(self, *events: ResourceQuota, kind: str = "MODIFIED") -> list[float]:
        for event in events:
            self.quotas.apply_event(kind, event)
        await asyncio.sleep(60)
        return self.worked


@virtual_time
async def test_a_raised_quota_wakes_the_refused() -> None:
    assert len(await Stage().see(quota(2, hard="5"))) == 1


@virtual_time
async def test_a_deleted_quota_wakes_the_refused() -> None:
    assert len(await Stage().see(quota(2), kind="DELETED")) == 1


@virtual_time
async def test_freed_usage_wakes_the_refused_every_few_seconds_at_most() -> None:
    """Other workloads of the namespace come and go ten times a second."""
    stage = Stage()
    for number in range(100):
        stage.quotas.apply_event("MODIFIED", quota(2 + number, used=str(4 - number % 2)))
        await asyncio.sleep(0.1)
    worked = await stage.see()
    assert 2 <= len(worked) <= 4
    assert worked[0] < 1.0


@virtual_time
async def test_a_quota_wakes_none_that_it_did_not_refuse() -> None:
    assert not await Stage("violates PodSecurity").see(quota(2, hard="5"))
    assert not await Stage().see(quota(2, used="5"))
    assert not await Stage().see(quota(2, hard="5", namespace="other"), kind="ADDED")
    stage = Stage()
    stage.refusals.record(KEY, Outcome(()))
    assert not await stage.see(quota(2, hard="5"))
    stage = Stage()
    stage.refusals.forget(KEY)
    assert not await stage.see(quota(2, hard="5"))
