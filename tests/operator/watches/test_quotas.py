"""When a quota has room again, and which keys that enqueues."""

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
from grove.operator.engine.key_state import KeyState
from grove.operator.keys import Key, ReplicaKey
from grove.operator.watches.quotas import freed, quota_watches
from grove.operator.watches.table import register
from tests.operator.watches.enqueued_keys import EnqueuedKeys

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
def test_quota_is_freed_if_usage_drops(before: dict[str, str], after: dict[str, str], expected: bool) -> None:
    old, new = (ResourceQuota(ObjectMeta(), ResourceQuotaStatus({}, used)) for used in (before, after))
    assert freed(old, new) == expected


def rejected(message: str) -> Outcome:
    about = Target("v1", "Pod", "greedy-0-a-xyz", "n")
    owner = {"kind": "PodClique", "name": "greedy-0-a"}
    intent = Create(about, {"metadata": {"ownerReferences": [owner]}})
    error = Forbidden("create pods n", ApiStatus(code=403, reason="Forbidden", message=message))
    return Outcome((Result(intent, IntentState.FAILED, "greedy-0-a-xyz", error=error),))


class QuotaRun:
    """A key that exceeded a quota, and the times of its passes."""

    def __init__(self, message: str = "exceeded quota: few") -> None:
        self.worked: list[float] = []
        self.quotas: Cache[ResourceQuota] = Cache(RESOURCE_QUOTAS, ResourceQuota)
        self.api_errors = ApiErrorLog()
        self.queue: WorkQueue[Key] = WorkQueue("test", self._work)
        watches = quota_watches(self.quotas, self.api_errors)
        register(watches, self.queue.enqueue, self.queue.reset_backoff)
        self.quotas.apply_event("ADDED", quota(1))
        self.api_errors.record(KEY, KeyState(), rejected(message))
        self.queue.start()

    async def _work(self, key: Key) -> None:
        assert key == KEY
        self.worked.append(asyncio.get_running_loop().time())

    async def apply(self, *events: ResourceQuota, kind: str = "MODIFIED") -> list[float]:
        for event in events:
            self.quotas.apply_event(kind, event)
        await asyncio.sleep(60)
        return self.worked


@virtual_time
async def test_raised_quota_enqueues_rejected_key() -> None:
    assert len(await QuotaRun().apply(quota(2, hard="5"))) == 1


@virtual_time
async def test_deleted_quota_enqueues_rejected_key() -> None:
    assert len(await QuotaRun().apply(quota(2), kind="DELETED")) == 1


@virtual_time
async def test_freed_quota_enqueues_every_few_seconds_at_most() -> None:
    """Other workloads of the namespace are created and deleted ten times a second."""
    run = QuotaRun()
    for number in range(100):
        run.quotas.apply_event("MODIFIED", quota(2 + number, used=str(4 - number % 2)))
        await asyncio.sleep(0.1)
    worked = await run.apply()
    assert 2 <= len(worked) <= 4
    assert worked[0] < 1.0


@virtual_time
async def test_quota_enqueues_only_keys_that_exceeded_it() -> None:
    assert not await QuotaRun("violates PodSecurity").apply(quota(2, hard="5"))
    assert not await QuotaRun().apply(quota(2, used="5"))
    assert not await QuotaRun().apply(quota(2, hard="5", namespace="other"), kind="ADDED")
    run = QuotaRun()
    run.api_errors.record(KEY, KeyState(), Outcome(()))
    assert not await run.apply(quota(2, hard="5"))
    run = QuotaRun()
    run.api_errors.forget(KEY)
    assert not await run.apply(quota(2, hard="5"))


async def test_only_raised_quota_resets_backoff() -> None:
    quotas: Cache[ResourceQuota] = Cache(RESOURCE_QUOTAS, ResourceQuota)
    quotas.apply_event("ADDED", quota(1))
    api_errors = ApiErrorLog()
    api_errors.record(KEY, KeyState(), rejected("exceeded quota: few"))
    keys = EnqueuedKeys(quota_watches(quotas, api_errors))
    assert keys.after(quotas.apply_event, "MODIFIED", quota(2, used="3")).keys() == {KEY}
    assert keys.reset == []
    assert keys.after(quotas.apply_event, "MODIFIED", quota(3, hard="5")).keys() == {KEY}
    assert keys.reset == [KEY]
