"""Input and output of the admission rules: `Facts` and requests in, field errors, warnings and decisions
out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from grove.api.configuration.types import PODS_PER_SET, Network, OperatorConfiguration, Scheduler
from grove.api.field_errors import FieldError
from grove.fabrics.channel_coverage import ChannelCoverage
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import DomainRequirement
from grove.schedulers.backend import ClusterLookup
from grove.schedulers.registry import SchedulerBackends, backends
from grove.topology.nesting import Nesting

_MAX_ERRORS = 100
"""With the limits of a field error, keeps a response readable and small for any object."""


class AdmissionResult(Struct, frozen=True):
    """The verdict on an object: all errors, and the warnings for its author. Without errors it is stored."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    @property
    def message(self) -> str:
        """The errors as Kubernetes joins them: one as it is, several as `[a, b]`."""
        lines = list(dict.fromkeys(map(str, self.errors[:_MAX_ERRORS])))
        if (more := len(self.errors) - _MAX_ERRORS) > 0:
            lines.append(f"and {more} more")
        return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]" if lines else ""


class TopologyUser(Struct, frozen=True):
    """A set whose constraints name a topology."""

    name: str
    """As `namespace/name`."""
    domains: frozenset[str]
    """The domains that its constraints name."""
    nestings: tuple[Nesting, ...] = ()
    """Which of these domains must lie inside which others."""


class Facts(Struct, frozen=True):
    """The configuration and the state of the cluster that the rules depend on. `Facts.of` takes the former
    from the operator's configuration; `grove.webhooks.cluster_facts` adds the latter."""

    backends: SchedulerBackends = field(default_factory=lambda: backends(Scheduler()))
    """The enabled scheduler backends."""
    topology_aware: bool = False
    """Whether sets may have topology constraints."""
    start_order: bool = True
    """Whether sets may have a start order."""
    topologies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The domains of each known topology by its name, from broad to narrow. A ClusterTopology takes
    precedence over a ClusterTopologyBinding of the same name."""
    unlabelled: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the name of a known topology, the domains of which no node has the label, with that label."""
    unused_labels: frozenset[str] = frozenset()
    """Labels of the topology under review that no node has."""
    users: tuple[TopologyUser, ...] = ()
    """The sets that use the topology under review."""
    other_kind_domains: tuple[str, ...] | None = None
    """The domains of the topology of the other kind with the same name; None if it does not exist."""
    found: Mapping[ClusterLookup, dict[str, Any] | None] = field(default_factory=dict)
    """The objects that scheduler backends looked up, and PriorityClasses; None for one that does not exist. A
    lookup that was not made has no entry."""
    network: Network = Network()
    """The configuration of multi-node NVLink."""
    fabrics: Providers = Providers()
    """The enabled fabric providers, one for each vendor."""
    unserved: frozenset[str] = frozenset()
    """Vendors whose domain kind the API server does not serve."""
    outdated: frozenset[str] = frozenset()
    """Those of them whose CRD exists and serves other versions."""
    domain_sharers: tuple[tuple[str, DomainRequirement], ...] = ()
    """The sets of the namespace by name, with the domains that they require and other sets may share."""
    channel_coverage: Mapping[str, ChannelCoverage] = field(default_factory=dict)
    """By vendor, the channels and accelerators of the nodes, where they are known."""
    pods_per_set: int = PODS_PER_SET
    """The highest number of pods that a set may have."""
    operator_user: str = ""
    """The operator's own user: `system:serviceaccount:<namespace>:<name>`."""
    exempt_users: tuple[str, ...] = ()
    """Other users that may change managed objects."""

    @property
    def schedulers(self) -> tuple[str, ...]:
        """The names of the enabled scheduler backends."""
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
        """The facts of a configuration, with those that the caller knows besides."""
        return cls(
            backends=in_use or backends(config.scheduler),
            topology_aware=config.topology_aware_scheduling.enabled,
            start_order=config.start_order.enabled,
            topologies=topologies or {},
            network=config.network,
            fabrics=fabrics or Providers(),
            pods_per_set=config.limits.pods_per_set,
            operator_user=operator_user,
            exempt_users=config.authorizer.exempt_service_account_user_names,
        )


class ManagedObjectRequest(Struct, frozen=True):
    """A request to create, change or delete an object that the operator manages."""

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    resource: str
    """The plural, for example `pods`."""
    user: str
    """The user name of the requester."""
    namespace: str = ""
    name: str = ""
    old_labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the stored object; empty on CREATE."""
    new_labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the new object; empty on DELETE."""


class ParentSet(Struct, frozen=True):
    """The set that a managed object belongs to."""

    name: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class Decision(Struct, frozen=True):
    """Whether a request is allowed; `reason` is the message to the user if not."""

    allowed: bool
    reason: str = ""
    warnings: tuple[str, ...] = ()
