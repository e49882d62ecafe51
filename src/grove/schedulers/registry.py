"""The scheduler backends in use: those that the configuration lists, built in or from other packages.

Another package provides a backend as a factory in the entry point group `grove.schedulers`, under the name of
its profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from grove.api.configuration.default_scheduler import PlacementSettings
from grove.api.configuration.loading import ConfigurationError, load_default_scheduler
from grove.api.configuration.types import OnUnsupported, Scheduler, SchedulerProfile
from grove.schedulers import kai, kube, lpx, volcano
from grove.schedulers.backend import ForeignKind, SchedulerBackend
from grove.schedulers.unavailable import UnavailableBackend

ENTRY_POINTS = "grove.schedulers"
Factory = Callable[[Mapping[str, Any]], SchedulerBackend]
"""Creates a backend from the `config` of its profile; raises ConfigurationError if that is invalid."""


class SchedulerBackends(Struct, frozen=True):
    """The backends in use, by name."""

    by_name: Mapping[str, SchedulerBackend]
    default_name: str
    lenient: frozenset[str] = frozenset()
    """The backends with `unsupportedConstraints: warn`."""

    def of(self, scheduler: str) -> SchedulerBackend | None:
        """The backend of a `schedulerName`, the default one for an empty name; None if it is not in use."""
        return self.by_name.get(scheduler or self.default_name)

    @property
    def placement(self) -> PlacementSettings | None:
        """How the operator places gangs; None if it places none."""
        settings = (each.placement for each in self.by_name.values() if isinstance(each, kube.Kube))
        return next((each for each in settings if each.enabled), None)

    @property
    def gang_object_kinds(self) -> tuple[ForeignKind, ...]:
        """The kinds of the backends' gang objects, in all versions that can be used."""
        kinds = (
            version.gang_object_kind
            for backend in self.by_name.values()
            for version in (backend, *backend.older_versions)
        )
        return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))

    @property
    def versioned_kinds(self) -> tuple[ForeignKind, ...]:
        """The kinds whose CRDs are read, as a backend supports only some versions of them."""
        kinds = (each.gang_object_kind for each in self.by_name.values() if each.inspects_crd)
        return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))

    @property
    def topology_aware(self) -> tuple[tuple[SchedulerBackend, ForeignKind], ...]:
        """The backends whose schedulers have topology objects, with the kind of these, sorted by name."""
        listed = (backend for _, backend in sorted(self.by_name.items()))
        return tuple((each, each.topology_kind) for each in listed if each.topology_kind is not None)


def backends(scheduler: Scheduler, others: Mapping[str, Factory] | None = None) -> SchedulerBackends:
    """The backends that a configuration lists. Raises ConfigurationError with all problems at once. A backend
    of another package that cannot be used is not a problem here: only the sets that use it wait."""
    profiles = scheduler.enabled_profiles
    created, problems = _create(enumerate(profiles), others)
    if problems:
        raise ConfigurationError(problems)
    lenient = {each.name for each in profiles if each.unsupported_constraints is OnUnsupported.WARN}
    return SchedulerBackends(created, scheduler.default_profile_name, frozenset(lenient))


def profile_problems(
    profiles: Iterable[tuple[int, SchedulerProfile]], others: Mapping[str, Factory] | None = None
) -> tuple[str, ...]:
    """What is wrong with profiles, given with their positions in the configuration."""
    return _create(profiles, others)[1]


def _create(
    profiles: Iterable[tuple[int, SchedulerProfile]], others: Mapping[str, Factory] | None
) -> tuple[dict[str, SchedulerBackend], tuple[str, ...]]:
    factories = {**(others or {}), **_BUILT_IN}
    created: dict[str, SchedulerBackend] = {}
    problems: list[str] = []
    for index, profile in profiles:
        place, factory = f"scheduler.profiles[{index}]", factories.get(profile.name)
        if factory is None:
            problems.append(
                f"{place}.name: no scheduler backend {profile.name}: use one of {', '.join(factories)}"
            )
            continue
        try:
            backend = factory(profile.config)
        except Exception as error:
            if profile.name in _BUILT_IN and isinstance(error, ConfigurationError):
                problems += (f"{place}.config.{problem}" for problem in error.problems)
                continue
            backend = UnavailableBackend(profile.name, f"{type(error).__name__}: {error}")
        if not isinstance(backend, SchedulerBackend):
            backend = UnavailableBackend(profile.name, f"it is {_no_subclass(backend)}")
        created[profile.name] = backend
    return created, tuple(problems)


def _no_subclass(backend: object) -> str:
    other, base = (f"{each.__module__}.{each.__qualname__}" for each in (type(backend), SchedulerBackend))
    return f"a {other}, which is no subclass of {base}: update the package that provides it"


def _kube(config: Mapping[str, Any]) -> SchedulerBackend:
    read = load_default_scheduler(config)
    if read.gang_scheduling:
        return kube.with_gang_scheduling(read.placement_settings)
    return kube.Kube(placement=read.placement_settings)


_BUILT_IN: Mapping[str, Factory] = {
    kube.NAME: _kube,
    kai.NAME: lambda _: kai.Kai(),
    volcano.NAME: lambda _: volcano.Volcano(),
    lpx.NAME: lambda _: lpx.Lpx(),
}
WITHOUT_SETTINGS = frozenset((kai.NAME, volcano.NAME, lpx.NAME))
"""The built-in backends whose profiles have no `config`."""
