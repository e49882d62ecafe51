"""A queue in which tenants take turns: however many items one tenant has waiting, the others come next.

Used by `write_limiter` for writes that wait for a slot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TenantQueue(Generic[T]):
    """Waiting items: first come, first served within a tenant."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def holds(self, tenant: str) -> bool:
        """Whether the tenant has waiting items."""
        return tenant in self._waiting

    def add(self, tenant: str, item: T) -> None:
        """Append an item of the tenant."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def take(self, allowed: Callable[[str], bool] | None = None) -> T | None:
        """Remove and return the next item of a tenant that is `allowed` one; None if there is none."""
        for tenant, items in self._waiting.items():
            if allowed is None or allowed(tenant):
                del self._waiting[tenant]
                item = items.popleft()
                if items:
                    self._waiting[tenant] = items  # at the end
                return item
        return None
