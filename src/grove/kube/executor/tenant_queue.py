"""Tenants take turns: whatever one of them has waiting, the others come next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TenantQueue(Generic[T]):
    """Items that wait, in the order in which they came, for each tenant by itself."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def holds(self, tenant: str) -> bool:
        """Whether the tenant has something waiting."""
        return tenant in self._waiting

    def add(self, tenant: str, item: T) -> None:
        """Wait for a turn."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def take(self, allowed: Callable[[str], bool] | None = None) -> T | None:
        """The item whose turn it is, of a tenant that is allowed to have one; None if there is none."""
        for tenant, items in self._waiting.items():
            if allowed is None or allowed(tenant):
                del self._waiting[tenant]
                item = items.popleft()
                if items:
                    self._waiting[tenant] = items  # behind the others
                return item
        return None
