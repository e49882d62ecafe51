"""The watches of ResourceQuotas: enqueue keys that exceeded a quota when it is raised or freed.

Other rejections (LimitRange, admission policies, PodSecurity, a missing ServiceAccount or PriorityClass) have
no watch event that resolves them: they are retried with back-off, once a minute at the latest.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction

from grove import timing
from grove.api.formats import quantities
from grove.api.types.kubernetes_objects import ResourceQuota
from grove.kube.cache.cache import Cache
from grove.operator.engine.api_error_log import ApiErrorLog
from grove.operator.keys import Key, namespace_of
from grove.operator.watches.table import Watch


def quota_watches(quotas: Cache[ResourceQuota], api_errors: ApiErrorLog) -> tuple[Watch, ...]:
    """The watches of quotas: the keys of a namespace that exceeded a quota are tried again."""
    rejected = _RejectedKeys(api_errors)
    return (
        Watch(quotas, rejected.keys, raised, timing.QUOTA_CACHE_DELAY, reset_backoff=True),
        Watch(quotas, rejected.keys, rejected.may_retry, rejected.retry_delay),
    )


def raised(old: ResourceQuota | None, new: ResourceQuota | None) -> bool:
    """The limits of a quota changed, or it is deleted."""
    return old is not None and (new is None or old.status.hard != new.status.hard)


def freed(old: ResourceQuota | None, new: ResourceQuota | None) -> bool:
    """The usage of any resource dropped, and the limits are the same."""
    if old is None or new is None or raised(old, new):
        return False
    used = new.status.used
    return any(_amount(used.get(name, "0")) < _amount(before) for name, before in old.status.used.items())


class _RejectedKeys:
    """The keys that exceeded a quota, and when they were last enqueued because usage dropped."""

    def __init__(self, api_errors: ApiErrorLog) -> None:
        self._api_errors = api_errors
        self._latest: dict[str, float] = {}

    def keys(self, old: ResourceQuota, _new: ResourceQuota | None) -> list[Key]:
        """The keys of the quota's namespace."""
        return self._api_errors.by_quota(old.metadata.namespace)

    def may_retry(self, old: ResourceQuota | None, new: ResourceQuota | None) -> bool:
        """The quota is freed, and there are such keys: quotas change with every pod, and are rarely
        exceeded."""
        if old is None:
            return False
        if not self.keys(old, new):
            self._latest.pop(old.metadata.namespace, None)
            return False
        return freed(old, new)

    def retry_delay(self, _old: ResourceQuota, _new: ResourceQuota, key: Key) -> float:
        """The same time for all keys of a namespace, and at least the interval after the time before."""
        now, namespace = asyncio.get_running_loop().time(), namespace_of(key)
        latest = self._latest.get(namespace, now - timing.QUOTA_RETRY_INTERVAL)
        if latest <= now:
            latest = max(now + timing.QUOTA_CACHE_DELAY, latest + timing.QUOTA_RETRY_INTERVAL)
        self._latest[namespace] = latest
        return latest - now


def _amount(written: str) -> Fraction:
    """The value of a quantity; 0 if it cannot be parsed, which an API server never writes."""
    try:
        return quantities.parse(written)
    except ValueError:
        return Fraction(0)
