"""Looks up the scheduler backend of a replica in the version that is served, its objects for the gangs of the
replica, and whether their kind can be used. Also loads the backends of the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

import msgspec

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.cache.cache import Cache
from grove.operator.caches.registry import BY_REPLICA, Caches, InspectedCRD
from grove.operator.keys import ReplicaKey
from grove.plan.gang.scheduler_selection import scheduler_of
from grove.schedulers.backend import ForeignKind, SchedulerBackend, SchedulerObject
from grove.schedulers.registry import ENTRY_POINTS, Factory, SchedulerBackends, backends, profile_problems


def load_backends(scheduler: Scheduler) -> SchedulerBackends:
    """The backends that a configuration lists, those of other projects found by entry point. Raises
    ConfigurationError."""
    return backends(scheduler, _installed(profile.name for profile in scheduler.profiles))


def backend_problems(profiles: Iterable[tuple[int, SchedulerProfile]]) -> tuple[str, ...]:
    """What is wrong with some profiles of a configuration that cannot be loaded."""
    listed = tuple(profiles)
    return profile_problems(listed, _installed(profile.name for _, profile in listed))


def _installed(names: Iterable[str]) -> dict[str, Factory]:
    """The backends of other projects with these names."""
    listed = frozenset(names)
    return {
        point.name: lambda config, point=point: point.load()(config)  # type: ignore[misc]
        for point in entry_points(group=ENTRY_POINTS)
        if point.name in listed
    }


class SchedulerLookup:
    """The enabled backends and their objects in the caches."""

    def __init__(self, caches: Caches, in_use: SchedulerBackends | None) -> None:
        self._caches, self._in_use = caches, in_use
        self._checked_crds: dict[str, tuple[str, str]] = {}
        """By backend, the resourceVersion of the CRD that was checked last, and the result."""

    def of(
        self, workload: PodCliqueSet, index: int, gangs: Mapping[str, PodGang], pods: Iterable[Pod]
    ) -> SchedulerBackend | None:
        """The backend of a replica; None if no scheduler objects are written for it."""
        in_use = self._in_use
        backend = in_use.of(scheduler_of(workload, index, gangs, pods, in_use.by_name)) if in_use else None
        return self._served_version(backend) if backend is not None and backend.older_versions else backend

    def _served_version(self, backend: SchedulerBackend) -> SchedulerBackend:
        """The latest version of a backend whose kind is served, else one whose kind is served and cannot be
        listed, else the latest."""
        versions = (backend, *backend.older_versions)
        known = [(version, self._cache(version)) for version in versions]
        synced = [version for version, cache in known if cache is not None and cache.synced.is_set()]
        failed = [version for version, cache in known if cache is not None and cache.list_error]
        return next(iter((*synced, *failed)), backend)

    def _cache(self, backend: SchedulerBackend) -> Cache[SchedulerObject] | None:
        kind = backend.gang_object_kind
        return self._caches.scheduler_objects.get(kind) if kind is not None else None

    def objects(
        self, key: ReplicaKey, backend: SchedulerBackend | None
    ) -> Mapping[str, SchedulerObject] | None:
        """The scheduler's objects for the gangs of a replica; None if their cache is not synced."""
        if backend is None or backend.gang_object_kind is None:
            return {}
        cache = self._cache(backend)
        if cache is None or not cache.synced_or_absent.is_set():
            return None
        return {found.metadata.name: found for found in cache.by_index(BY_REPLICA, key)}

    def kind_problem(self, backend: SchedulerBackend | None) -> str:
        """Why the kind of a scheduler's objects cannot be used: it is not served, cannot be listed, or its
        CRD is not compatible. Empty if it can, or if that is not known."""
        if backend is None or backend.gang_object_kind is None:
            return ""
        if backend.inspects_crd:
            return self._incompatibility(backend, backend.gang_object_kind)
        cache = self._cache(backend)
        if cache is None or cache.synced.is_set():
            return ""
        known = cache.list_error or cache.synced_or_absent.is_set()
        try:
            return backend.kind_problem(cache.list_error) if known else ""
        except Exception as problem:  # raised by a backend of another project
            return f"scheduler backend {backend.name} failed: {type(problem).__name__}: {problem}"

    def _incompatibility(self, backend: SchedulerBackend, kind: ForeignKind) -> str:
        cache = self._caches.inspected_crds.get(kind)
        if cache is None or not cache.synced.is_set():
            return ""
        found = cache.get("", kind.crd_name)
        version = found.metadata.resource_version if found is not None else ""
        known = self._checked_crds.get(backend.name)
        if known is None or known[0] != version:
            known = self._checked_crds[backend.name] = (version, _check_crd(backend, found))
        return known[1]


def _check_crd(backend: SchedulerBackend, found: InspectedCRD | None) -> str:
    try:
        return backend.crd_problem({"spec": msgspec.json.decode(found.spec)} if found is not None else None)
    except Exception as problem:  # raised by a backend of another project
        return f"its CustomResourceDefinition could not be checked: {type(problem).__name__}: {problem}"
