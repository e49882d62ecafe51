"""What the rules of admission are told, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct, field

from grove.api.configuration.types import PODS_PER_SET, Network, OperatorConfiguration, Scheduler
from grove.fabrics.channel_coverage import ChannelCoverage
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import DomainRequirement
from grove.schedulers.backend import ClusterLookup
from grove.schedulers.registry import SchedulerBackends, backends
from grove.topology.nesting import Nesting

_MAX_ERRORS = 100
"""An answer stays readable, and small, whatever was sent."""
_MAX_VALUE = 200
_MAX_DETAIL = 1000


class ErrorType(StrEnum):
    """What is wrong with a field, in the words of Kubernetes."""

    INVALID = "Invalid value"
    REQUIRED = "Required value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "Not found"
    UNSUPPORTED = "Unsupported value"
    TOO_LONG = "Too long"


_WITHOUT_VALUE = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG})


class FieldError(Struct, frozen=True):
    """One thing that is wrong, and where; `str` renders it as `path: Invalid value: v: detail`."""

    path: str
    problem: ErrorType
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        shown = [] if self.problem in _WITHOUT_VALUE else [_shown(self.value)]
        detail = [_clipped(self.detail, _MAX_DETAIL)] if self.detail else []
        return ": ".join([_clipped(self.path, _MAX_VALUE), self.problem.value, *shown, *detail])


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """A value that cannot be used."""
    return FieldError(path, ErrorType.INVALID, value, detail)


def required(path: str, detail: str = "") -> FieldError:
    """A value that is missing."""
    return FieldError(path, ErrorType.REQUIRED, detail=detail)


def duplicate(path: str, value: Any) -> FieldError:
    """A value that may be there only once."""
    return FieldError(path, ErrorType.DUPLICATE, value)


def forbidden(path: str, detail: str) -> FieldError:
    """Something that may not be there, or not be done."""
    return FieldError(path, ErrorType.FORBIDDEN, detail=detail)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """A name that nobody bears."""
    return FieldError(path, ErrorType.NOT_FOUND, value, detail)


def unsupported(path: str, value: Any, supported: tuple[str, ...]) -> FieldError:
    """A value outside of a list."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return FieldError(path, ErrorType.UNSUPPORTED, value, f"supported values: {listed}")


class AdmissionResult(Struct, frozen=True):
    """Whether an object may be stored: everything that is wrong with it, and what its author should know."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.errors

    @property
    def message(self) -> str:
        """The errors as Kubernetes joins them: one as it is, several as `[a, b]`."""
        told = list(dict.fromkeys(map(str, self.errors[:_MAX_ERRORS])))
        if (more := len(self.errors) - _MAX_ERRORS) > 0:
            told.append(f"and {more} more")
        return told[0] if len(told) == 1 else f"[{', '.join(told)}]" if told else ""


class TopologyUser(Struct, frozen=True):
    """A set that means a topology."""

    name: str
    """As `namespace/name`."""
    domains: frozenset[str]
    """The domains that its constraints name."""
    nestings: tuple[Nesting, ...] = ()
    """Which of them are to lie inside of which others."""


class Facts(Struct, frozen=True):
    """What the rules need to know of the world. `Facts.of` takes it from the operator's configuration."""

    backends: SchedulerBackends = field(default_factory=lambda: backends(Scheduler()))
    """Scheduler backends that are enabled."""
    topology_aware: bool = False
    """Whether workloads may carry topology constraints."""
    topologies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each topology that is known, by name, the domains from broad to narrow. Of two kinds with one name,
    the ClusterTopology's."""
    users: tuple[TopologyUser, ...] = ()
    """The sets that mean the topology that is asked about."""
    other_kind_domains: tuple[str, ...] | None = None
    """The domains of the topology of the other kind that has the same name; None if there is none."""
    found: Mapping[ClusterLookup, dict[str, Any] | None] = field(default_factory=dict)
    """What backends enquired about, as far as somebody has looked; None: it is not there."""
    network: Network = Network()
    """Multi-node NVLink."""
    fabrics: Providers = Providers()
    """Vendors whose domains cliques may be in."""
    unserved: frozenset[str] = frozenset()
    """Vendors whose kind the API server does not serve."""
    domain_sharers: tuple[tuple[str, DomainRequirement], ...] = ()
    """Which sets of the namespace, by name, ask for which domains that others may share."""
    channel_coverage: Mapping[str, ChannelCoverage] = field(default_factory=dict)
    """By vendor, what the nodes have for its domains, where that is known."""
    pods_per_set: int = PODS_PER_SET
    """The most pods that a set may ask for."""
    operator_user: str = ""
    """Who we are: `system:serviceaccount:<namespace>:<name>`."""
    exempt_users: tuple[str, ...] = ()
    """Who else may change managed objects."""

    @property
    def schedulers(self) -> tuple[str, ...]:
        """The names of backends that are enabled."""
        return tuple(self.backends.by_name)

    @classmethod
    def of(
        cls,
        config: OperatorConfiguration,
        topologies: Mapping[str, tuple[str, ...]] | None = None,
        operator_user: str = "",
        in_use: SchedulerBackends | None = None,
        fabrics: Providers | None = None,
    ) -> Facts:
        """The facts that follow from the configuration, and those that do not."""
        return cls(
            backends=in_use or backends(config.scheduler),
            topology_aware=config.topology_aware_scheduling.enabled,
            topologies=topologies or {},
            network=config.network,
            fabrics=fabrics or Providers(),
            pods_per_set=config.limits.pods_per_set,
            operator_user=operator_user,
            exempt_users=config.authorizer.exempt_service_account_user_names,
        )


class ManagedObjectRequest(Struct, frozen=True):
    """Somebody wants to change an object that the operator manages."""

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    resource: str
    """The plural, for example `pods`."""
    user: str
    """Who asks."""
    namespace: str = ""
    name: str = ""
    old_labels: Mapping[str, str] = field(default_factory=dict)
    """What the object carries; empty on CREATE."""
    new_labels: Mapping[str, str] = field(default_factory=dict)
    """What it is to carry; empty on DELETE."""


class ParentSet(Struct, frozen=True):
    """The set that a managed object belongs to."""

    name: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class Decision(Struct, frozen=True):
    """Whether a request may pass; `reason` is for whoever is refused."""

    allowed: bool
    reason: str = ""
    warnings: tuple[str, ...] = ()


def _shown(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return f"({type(value).__name__})"
    return _clipped(text, _MAX_VALUE)


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "..."
