"""Volumes, their claims and StorageClasses, for the placement of gangs: on which nodes they can be used. They
are watched only once a pod of a gang has a volume by a claim."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.cluster.volume_objects import StorageClass, Volume, VolumeClaim, VolumeClaimSpec
from grove.kube.cache.cache import Cache, T
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from grove.plan.placement.needs import KnownVolume
from grove.topology.placement.needs.volumes import Terms, nodes_of_class, nodes_of_volume

_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_LATE_BINDING = "WaitForFirstConsumer"
_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that names the class of a claim, before the field of its spec."""


class Volumes:
    """The caches of volumes, claims and classes."""

    def __init__(self) -> None:
        self.claims: Cache[VolumeClaim] = Cache(
            PERSISTENT_VOLUME_CLAIMS,
            VolumeClaim,
            projection=lambda found: VolumeClaim(_meta(found), _spec(found), found.status),
        )
        self.volumes: Cache[Volume] = Cache(
            PERSISTENT_VOLUMES, Volume, projection=lambda found: Volume(_meta(found), found.spec)
        )
        self.classes: Cache[StorageClass] = Cache(STORAGE_CLASSES, StorageClass)
        self._required = asyncio.Event()
        self._reflectors: list[Reflector[Any, Any]] = []

    @property
    def all(self) -> tuple[Cache[Any], ...]:
        return (self.claims, self.volumes, self.classes)

    def require(self) -> None:
        """Watch volumes from now on."""
        self._required.set()

    @property
    def listed(self) -> bool:
        """Whether everything is listed."""
        return all(cache.synced.is_set() for cache in self.all)

    @property
    def is_forbidden(self) -> bool:
        """Whether a right is missing without which volumes cannot be listed."""
        return not self.listed and "403" in self.problem

    @property
    def problem(self) -> str:
        """Why a watch is interrupted, such as a missing RBAC permission; empty if none is."""
        watched = (each.problem for each in self._reflectors)
        return next(filter(None, (*watched, *(cache.list_error for cache in self.all))), "")

    def known(self, namespace: str, claim: str) -> KnownVolume | None:
        """The volume of a claim; None if there is no such claim. What is not seen yet is not bound."""
        found = self.claims.get(namespace, claim)
        if found is None:
            return None
        volume = self.volumes.get("", found.spec.volume_name) if found.spec.volume_name else None
        if volume is not None and found.status.phase == "Bound":
            return KnownVolume(bound=True, nodes=nodes_of_volume(volume))
        late = self._late_class(found.spec.storage_class_name)
        if late is None or found.spec.volume_name:
            return KnownVolume(bound=False, bound_first=True)
        return KnownVolume(bound=False, nodes=nodes_of_class(late))

    def nodes_of_class(self, name: str) -> Terms:
        """The nodes for which a class provisions volumes; without a name, the default class. Volumes that are
        not bound late are bound without regard to the pod."""
        late = self._late_class(name or None)
        return nodes_of_class(late) if late is not None else None

    def _late_class(self, name: str | None) -> StorageClass | None:
        """The class of this name, if its volumes are bound when a pod is scheduled. None is the default
        class, and an empty name no class at all."""
        found = next(filter(_is_default, self.classes), None) if name is None else self.classes.get("", name)
        return found if found is not None and found.volume_binding_mode == _LATE_BINDING else None

    async def run(self, client: Client) -> None:
        """Watch volumes as soon as they are required, until cancelled."""
        await self._required.wait()
        self._reflectors = [Reflector(client, cache) for cache in self.all]
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())


def _is_default(found: StorageClass) -> bool:
    return found.metadata.annotations.get(_IS_DEFAULT) == "true"


def _spec(found: VolumeClaim) -> VolumeClaimSpec:
    named = found.metadata.annotations.get(_CLASS)
    return found.spec if named is None else replace(found.spec, storage_class_name=named)


def _meta(found: T) -> ObjectMeta:
    """The identity of an object: its labels and annotations are not read."""
    meta = found.metadata
    return ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version)
