"""The operator that is assumed: its configuration, with the schedulers and vendors that it names, and the
caches that such an operator has."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from grove.api.configuration.types import (
    Dynamo,
    OperatorConfiguration,
    Scheduler,
    SchedulerProfile,
    TopologyAwareScheduling,
)
from grove.fabrics.registry import Providers
from grove.operator.caches.registry import Caches
from grove.operator.fabric_providers import load_providers
from grove.operator.observers.schedulers import load_backends
from grove.schedulers import kai, kube, lpx, volcano
from grove.schedulers.registry import SchedulerBackends

_SCHEDULERS = (kube.NAME, kai.NAME, volcano.NAME, lpx.NAME)


class OperatorSetup(Struct, frozen=True):
    """A configuration, with what it names."""

    configuration: OperatorConfiguration
    backends: SchedulerBackends
    fabrics: Providers


def operator_setup(configuration: OperatorConfiguration | None = None) -> OperatorSetup:
    """The setup of a configuration; by default of an operator with everything enabled that workloads may ask
    for. Raises ConfigurationError."""
    chosen = configuration or _everything()
    return OperatorSetup(chosen, load_backends(chosen.scheduler), load_providers(chosen))


def _everything() -> OperatorConfiguration:
    """Every scheduler, topology constraints and DynamoGraphDeployments. Automatic fabric domains stay off:
    they change workloads that do not ask for them."""
    return replace(
        OperatorConfiguration(),
        scheduler=Scheduler(profiles=tuple(map(SchedulerProfile, _SCHEDULERS))),
        topology_aware_scheduling=TopologyAwareScheduling(enabled=True),
        dynamo=replace(Dynamo(), enabled=True),
    )


def new_caches(setup: OperatorSetup) -> Caches:
    """Empty caches, as an operator with this setup has them."""
    configuration, backends = setup.configuration, setup.backends
    topology_aware = configuration.topology_aware_scheduling.enabled
    placement = backends.placement
    return Caches(
        backends.gang_object_kinds,
        tuple(kind for _, kind in backends.topology_aware) if topology_aware else (),
        backends.versioned_kinds,
        setup.fabrics,
        auto_fabric=configuration.network.auto_mnnvl_enabled,
        pods_per_set=configuration.limits.pods_per_set,
        placement=True,
        topology_aware=topology_aware,
        reads_topologies=topology_aware or configuration.dynamo.enabled,
        start_order=configuration.start_order.enabled,
        scheduler_lease=placement.scheduler_lease if placement is not None else None,
    )
