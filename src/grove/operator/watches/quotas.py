"""Event mapping for ResourceQuotas: enqueues keys that exceeded a quota when it is raised or freed.

Other rejections (LimitRange, admission policies, PodSecurity, a missing ServiceAccount or PriorityClass) have
no watch event that resolves them: they are retried with back-off, once a minute at the latest.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction

from grove.api.formats import quantities
from grove.api.types.kubernetes_objects import ResourceQuota
from grove.kube.cache.cache import Cache
from grove.kube.workqueue.queue import WorkQueue
from grove.operator.engine.api_error_log import ApiErrorLog
from grove.operator.keys import Key

_QUOTA_CACHE_DELAY = 0.25  # seconds until the API server's own cache of quotas has the change, too
_RETRY_INTERVAL = 5.0  # seconds between retries while other pods of the namespace come and go


class QuotaWatch:
    """Enqueues the keys of a namespace that exceeded a quota when one of its quotas has more room."""

    def __init__(self, quotas: Cache[ResourceQuota], api_errors: ApiErrorLog, queue: WorkQueue[Key]) -> None:
        self._api_errors, self._queue = api_errors, queue
        self._latest: dict[str, float] = {}  # when keys were last enqueued because usage dropped
        quotas.subscribe(self._on_quota)

    def _on_quota(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        if old is None:
            return
        namespace = old.metadata.namespace
        keys = self._api_errors.by_quota(namespace)
        if not keys:
            self._latest.pop(namespace, None)
            return
        now = asyncio.get_running_loop().time()
        if new is None or old.status.hard != new.status.hard:
            for key in keys:
                self._queue.reset_backoff(key)
                self._queue.enqueue(key, now + _QUOTA_CACHE_DELAY)
        elif freed(old, new):
            latest = self._latest.get(namespace, now - _RETRY_INTERVAL)
            at = latest if latest > now else max(now + _QUOTA_CACHE_DELAY, latest + _RETRY_INTERVAL)
            self._latest[namespace] = at
            for key in keys:
                self._queue.enqueue(key, at)


def freed(old: ResourceQuota, new: ResourceQuota) -> bool:
    """Whether the usage of any resource dropped."""
    return any(
        _amount(new.status.used.get(name, "0")) < _amount(used) for name, used in old.status.used.items()
    )


def _amount(written: str) -> Fraction:
    """The value of a quantity; 0 if it cannot be parsed, which an API server never writes."""
    try:
        return quantities.parse(written)
    except ValueError:
        return Fraction(0)
