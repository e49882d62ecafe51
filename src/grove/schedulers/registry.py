"""Which scheduler backends are in use: those that the configuration lists, ours and those of others.

Somebody else's is a factory under the entry point group `grove.schedulers`, named like its profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import OnUnsupported, Scheduler
from grove.schedulers import kai, kube, lpx, volcano
from grove.schedulers.backend import ForeignKind, SchedulerBackend, TopologyAware, VersionedBackend
from grove.schedulers.unavailable import UnavailableBackend

ENTRY_POINTS = "grove.schedulers"
Factory = Callable[[Mapping[str, Any]], SchedulerBackend]
"""Makes a backend from the `config` of its profile; raises ValueError about what is wrong in there."""


class SchedulerBackends(Struct, frozen=True):
    """The backends in use, by name."""

    by_name: Mapping[str, SchedulerBackend]
    default_name: str
    lenient: frozenset[str] = frozenset()
    """Those whose users are only warned of constraints that are not kept."""

    def of(self, scheduler: str) -> SchedulerBackend | None:
        """The backend of pods that ask for a scheduler; those that name none get the default one."""
        return self.by_name.get(scheduler or self.default_name)

    @property
    def gang_object_kinds(self) -> tuple[ForeignKind, ...]:
        """The kinds of what they are told about gangs."""
        kinds = (backend.gang_object_kind for backend in self.by_name.values())
        return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))

    @property
    def versioned_kinds(self) -> tuple[ForeignKind, ...]:
        """The kinds whose definitions must be looked at, as not every version will do."""
        particular = (backend for backend in self.by_name.values() if isinstance(backend, VersionedBackend))
        return tuple(
            dict.fromkeys(kind for backend in particular if (kind := backend.gang_object_kind) is not None)
        )

    @property
    def topology_aware(self) -> tuple[TopologyAware, ...]:
        """Those that keep topologies, by name."""
        aware = (backend for _, backend in sorted(self.by_name.items()))
        return tuple(backend for backend in aware if isinstance(backend, TopologyAware))


def backends(scheduler: Scheduler, others: Mapping[str, Factory] | None = None) -> SchedulerBackends:
    """The backends that a configuration lists. Raises ConfigurationError, about all that is wrong at once."""
    factories = {**(others or {}), **_OURS}
    made: dict[str, SchedulerBackend] = {}
    problems: list[str] = []
    for index, profile in enumerate(scheduler.enabled_profiles):
        place, factory = f"scheduler.profiles[{index}]", factories.get(profile.name)
        if factory is None:
            problems.append(f"{place}.name: no scheduler backend {profile.name}: {', '.join(factories)}")
            continue
        try:
            made[profile.name] = factory(profile.config)
        except Exception as error:
            if profile.name in _OURS:
                problems.append(f"{place}.config: {error}")
            else:
                made[profile.name] = UnavailableBackend(profile.name, f"{type(error).__name__}: {error}")
    if problems:
        raise ConfigurationError(tuple(problems))
    lenient = {
        each.name for each in scheduler.enabled_profiles if each.unsupported_constraints is OnUnsupported.WARN
    }
    return SchedulerBackends(made, scheduler.default_profile_name, frozenset(lenient))


def _kube(config: Mapping[str, Any]) -> SchedulerBackend:
    chosen = config.get("gangScheduling", False)
    if not isinstance(chosen, bool):
        raise ValueError(f"gangScheduling must be true or false, not {chosen!r}")  # noqa: TRY004 - of a file
    return kube.Kube(gang_scheduling=chosen)


_OURS: Mapping[str, Factory] = {
    kube.NAME: _kube,
    kai.NAME: lambda _: kai.Kai(),
    volcano.NAME: lambda _: volcano.Volcano(),
    lpx.NAME: lambda _: lpx.Lpx(),
}
