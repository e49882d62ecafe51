"""Devices that exist only in ResourceSlices, for the placement of gangs: how many each node has, and to which
claims they are allocated. They are watched only once a gang claims devices, or requests them as an extended
resource; their classes, which say what that is, always."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.cluster.device_objects import AllocatedClaim, CountedDevice, DeviceClass, DeviceSlice
from grove.kube.cache.cache import Cache, T
from grove.kube.cache.reflector import CrdWaiter, Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from grove.topology.placement.needs.device_classes import attribute_names, conditions_of
from grove.topology.placement.needs.devices import extended_resources

_FOR_REQUESTS = "resource.kubernetes.io/extended-resource-claim"


class Devices:
    """The caches of slices, device classes and claims. Of the attributes of devices only those are kept that
    a device class compares: devices have many, and most of them are unique."""

    def __init__(self) -> None:
        self.slices: Cache[DeviceSlice] = Cache(RESOURCE_SLICES, DeviceSlice, projection=self._slice)
        self.classes: Cache[DeviceClass] = Cache(
            DEVICE_CLASSES, DeviceClass, projection=lambda found: DeviceClass(_meta(found), found.spec)
        )
        self.claims: Cache[AllocatedClaim] = Cache(
            RESOURCE_CLAIMS,
            AllocatedClaim,
            projection=lambda found: AllocatedClaim(_claim_meta(found), found.status),
        )
        self._attributes: frozenset[str] = frozenset()
        self._more_attributes = asyncio.Event()
        self.classes.subscribe(self._on_class)
        self._required = asyncio.Event()
        self._reflectors: dict[str, Reflector[Any, Any]] = {}

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        return (self.slices, self.classes, self.claims)

    def require(self) -> None:
        """Watch devices from now on."""
        self._required.set()

    @property
    def synced(self) -> bool:
        """Whether all is listed that is required."""
        return not self._required.is_set() or self.listed

    @property
    def extended_resources(self) -> dict[str, str]:
        """By extended resource, the class whose devices pods get for it, as far as classes are listed."""
        return extended_resources(self.classes)

    @property
    def listed(self) -> bool:
        """Whether all devices are listed; a kind that is not served has no objects."""
        return all(cache.synced_or_absent.is_set() for cache in self.all)

    @property
    def is_forbidden(self) -> bool:
        """Whether a right is missing without which devices cannot be listed."""
        return not self.synced and "403" in self.problem

    @property
    def problem(self) -> str:
        """Why a watch is interrupted, such as a missing RBAC permission; empty if none is."""
        watched = (each.problem for each in self._reflectors.values())
        return next(filter(None, (*watched, *(cache.list_error for cache in self.all))), "")

    @property
    def forbidden(self) -> bool:
        """Whether the problem is a missing RBAC permission."""
        return next((each.forbidden for each in self._reflectors.values() if each.problem), False)

    async def run(self, client: Client, crd_watch: CrdWaiter) -> None:
        """Watch device classes, and devices as soon as they are required, until cancelled."""

        def reflector(cache: Cache[Any]) -> Reflector[Any, Any]:
            return Reflector(client, cache, crd_watch=crd_watch, optional=True)

        def watch(tasks: asyncio.TaskGroup, cache: Cache[Any]) -> None:
            found = self._reflectors[cache.resource.plural] = reflector(cache)
            tasks.create_task(found.run())

        async with asyncio.TaskGroup() as tasks:
            watch(tasks, self.classes)
            await self._required.wait()
            watch(tasks, self.claims)
            await self.classes.synced_or_absent.wait()
            tasks.create_task(self._watch_slices(reflector))

    async def _watch_slices(self, reflector: Callable[[Cache[Any]], Reflector[Any, Any]]) -> None:
        """Watch slices. The cache has dropped all attributes that no class compared, so they are listed again
        once a class compares another one."""
        while True:
            self._more_attributes.clear()
            watch = self._reflectors[self.slices.resource.plural] = reflector(self.slices)
            watching = asyncio.create_task(watch.run())
            try:
                await self._more_attributes.wait()
            finally:
                watching.cancel()
                await asyncio.wait({watching})
            self.slices.clear()
            self.slices.synced_or_absent.clear()  # until they are listed again

    def _on_class(self, _old: DeviceClass | None, new: DeviceClass | None) -> None:
        compared = attribute_names([conditions_of(new)] if new is not None else [])
        if not compared <= self._attributes:
            self._attributes |= compared
            self._more_attributes.set()

    def _slice(self, found: DeviceSlice) -> DeviceSlice:
        devices = tuple(map(self._device, found.spec.devices))
        return DeviceSlice(_meta(found), replace(found.spec, devices=devices))

    def _device(self, device: CountedDevice) -> CountedDevice:
        compared = {
            name: value
            for name, value in device.attributes.items()
            if name.rpartition("/")[2] in self._attributes
        }
        return replace(device, attributes=compared)


def _meta(found: T) -> ObjectMeta:
    """The identity of an object: its labels and annotations are not read."""
    meta = found.metadata
    return ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version)


def _claim_meta(found: AllocatedClaim) -> ObjectMeta:
    """The identity of a claim, and the mark of those that the scheduler creates."""
    marks = {key: value for key, value in found.metadata.annotations.items() if key == _FOR_REQUESTS}
    return replace(_meta(found), annotations=marks)


def is_for_requests(claim: AllocatedClaim) -> bool:
    """Whether the scheduler created a claim for extended resources that a pod requests."""
    return _FOR_REQUESTS in claim.metadata.annotations
