"""How many streams are open: in total, for each user, and for all ServiceAccounts of a namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from grove import timing
from grove.dashboard.access.errors import TooMany
from grove.dashboard.access.tenants import tenant_of


class OpenStreams:
    """All open streams of one server."""

    def __init__(
        self,
        total: int = timing.DASHBOARD_STREAMS,
        per_user: int = timing.DASHBOARD_STREAMS_PER_USER,
        per_tenant: int = timing.DASHBOARD_STREAMS_PER_TENANT,
    ) -> None:
        self._total, self._per_user, self._per_tenant = total, per_user, per_tenant
        self._open: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._open.total()

    @contextmanager
    def opened(self, key: str) -> Iterator[None]:
        """Count a stream while the body runs. Raises TooMany."""
        if self._open[key] >= self._per_user:
            raise TooMany("open pages of this user", timing.HEARTBEAT_INTERVAL)
        tenant = tenant_of(key)
        if tenant and self._tenants[tenant] >= self._per_tenant:
            raise TooMany("open pages of the ServiceAccounts of this namespace", timing.HEARTBEAT_INTERVAL)
        if len(self) >= self._total:
            raise TooMany("open pages", timing.HEARTBEAT_INTERVAL)
        self._open[key] += 1
        self._tenants[tenant] += 1
        try:
            yield
        finally:
            _decrease(self._open, key)
            _decrease(self._tenants, tenant)


def _decrease(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
