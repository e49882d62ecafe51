"""Devices that exist only in ResourceSlices, for the placement of gangs: how many each node has, and to which
claims they are allocated. They are watched only once a gang claims devices."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from grove.api.meta import ObjectMeta
from grove.api.types.cluster.device_objects import AllocatedClaim, DeviceClass, DeviceSlice
from grove.kube.cache.cache import Cache, T
from grove.kube.cache.reflector import CrdWaiter, Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from grove.topology.placement.devices import devices_by_node, drivers
from grove.topology.placement.model import Amounts


class Devices:
    """The caches of slices, device classes and claims."""

    def __init__(self) -> None:
        self.slices: Cache[DeviceSlice] = Cache(
            RESOURCE_SLICES, DeviceSlice, projection=lambda found: DeviceSlice(_meta(found), found.spec)
        )
        self.classes: Cache[DeviceClass] = Cache(
            DEVICE_CLASSES, DeviceClass, projection=lambda found: DeviceClass(_meta(found), found.spec)
        )
        self.claims: Cache[AllocatedClaim] = Cache(
            RESOURCE_CLAIMS,
            AllocatedClaim,
            projection=lambda found: AllocatedClaim(_meta(found), found.status),
        )
        self._required = asyncio.Event()
        self._reflectors: list[Reflector[Any, Any]] = []

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        return (self.slices, self.classes, self.claims)

    def require(self) -> None:
        """Watch devices from now on."""
        self._required.set()

    @property
    def synced(self) -> bool:
        """Whether all is listed that is required; a kind that is not served has no objects."""
        return not self._required.is_set() or all(cache.synced_or_absent.is_set() for cache in self.all)

    @property
    def problem(self) -> str:
        """Why a watch is interrupted, such as a missing RBAC permission; empty if none is."""
        return next((each.problem for each in self._reflectors if each.problem), "")

    def drivers(self) -> dict[str, str]:
        """By device class, the driver of its devices, as far as they can be counted."""
        return drivers(map(to_builtins, self.classes))

    def by_node(self) -> Mapping[str, Amounts]:
        """By node and device class, how many devices there are."""
        return devices_by_node(map(to_builtins, self.slices), self.drivers())

    def pools(self) -> dict[tuple[str, str], str]:
        """The node of each pool, by driver and name of the pool."""
        specs = (found.spec for found in self.slices)
        return {(spec.driver, spec.pool.name): spec.node_name for spec in specs if spec.node_name}

    async def run(self, client: Client, crd_watch: CrdWaiter) -> None:
        """Watch devices as soon as they are required, until cancelled."""
        await self._required.wait()
        self._reflectors = [
            Reflector(client, cache, crd_watch=crd_watch, optional=True) for cache in self.all
        ]
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())


def _meta(found: T) -> ObjectMeta:
    """The identity of an object: its labels and annotations are not read."""
    meta = found.metadata
    return ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version)
