"""A round-robin queue of two levels: tenants take turns, and within a tenant its owners. However many items
one of them has waiting, the others come next.

Used by `fair_queue` for keys that wait for a worker, and by `write_limiter` for writes that wait for a slot.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

N = TypeVar("N", bound=Hashable)
T = TypeVar("T", bound=Hashable)


class RoundRobinQueue(Generic[N, T]):
    """Waiting items by tenant and owner: first come, first served within an owner. The costs of all methods
    do not depend on how many items and owners a tenant has."""

    def __init__(self) -> None:
        self._tenants: OrderedDict[N, OrderedDict[Hashable, OrderedDict[T, None]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def holds(self, tenant: N) -> bool:
        """Whether the tenant has waiting items."""
        return tenant in self._tenants

    def add(self, item: T, tenant: N, owner: Hashable = None) -> None:
        """Append an item, which must not wait already."""
        owners = self._tenants.setdefault(tenant, OrderedDict())
        owners.setdefault(owner, OrderedDict())[item] = None

    def pop(self, allowed: Callable[[N], bool] | None = None) -> T | None:
        """Remove and return the next item of a tenant that is `allowed` one; None if there is none."""
        for tenant, owners in self._tenants.items():
            if allowed is None or allowed(tenant):
                owner, items = next(iter(owners.items()))
                item, _ = items.popitem(last=False)
                _end_turn(owners, owner)
                _end_turn(self._tenants, tenant)
                return item
        return None

    def remove(self, item: T, tenant: N, owner: Hashable = None) -> None:
        """Remove an item if it waits; the turns of tenants and owners stay as they are."""
        owners = self._tenants.get(tenant)
        items = owners.get(owner) if owners else None
        if owners and items and item in items:
            del items[item]
            if not items:
                del owners[owner]
            if not owners:
                del self._tenants[tenant]


def _end_turn(waiting: OrderedDict[Any, Any], name: Hashable) -> None:
    """Put a tenant or an owner behind the others, or remove it if it has no items left."""
    if waiting[name]:
        waiting.move_to_end(name)
    else:
        del waiting[name]
