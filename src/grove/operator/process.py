"""One operator process: caches that are always synced, leader election, servers, and an orderly end.

    configuration ─► transport ─► caches ─► election ─► controller
                        └► probes, metrics, webhooks      (leader only)

The process ends at SIGTERM or SIGINT, or when it loses leadership: it then starts again from the beginning,
which is the path that is tested most (docs/decisions/lost-leadership.md).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from msgspec import Struct

from grove import timing
from grove.api.configuration.types import LeaderElection, OperatorConfiguration
from grove.api.formats import durations
from grove.fabrics.registry import Providers
from grove.kube.auth.config import SERVICE_ACCOUNT, Config
from grove.kube.client.client import Client
from grove.kube.client.transport import HttpTransport
from grove.kube.errors import ConfigError, KubeError
from grove.kube.leader.elector import Elector
from grove.kube.leader.leadership import FencedTransport
from grove.kube.leader.lease import LeaseTiming, new_identity
from grove.kube.server.listener import raise_file_limit
from grove.logger import get_logger
from grove.operator import python_gc
from grove.operator.admission.gate import AdmissionGate
from grove.operator.dynamo_settings import DynamoSettings, dynamo_operator_conflict
from grove.operator.fabric_providers import preflight
from grove.operator.manager import Manager
from grove.operator.servers import endpoints, serving
from grove.operator.webhooks import AdmissionWebhooks
from grove.schedulers.registry import SchedulerBackends

log = get_logger("grove.operator")


class LeadershipEnded(Exception):
    """This process was the leader and no longer is; the message says why."""


class OperatorSettings(Struct, frozen=True):
    """The configuration of a process, with what comes from the command line and the environment."""

    configuration: OperatorConfiguration
    connection: Config
    namespace: str = ""
    """The namespace of the lease, if the command line gives one."""
    init_image: str = ""
    """The image of the init container for startup order."""
    account: str = ""
    """The ServiceAccount that the process runs as, if the environment names it."""
    backends: SchedulerBackends | None = None
    """The backends of the schedulers that workloads may use; None: no scheduler objects are written."""
    fabrics: Providers = Providers()
    """The vendors whose fabric domains are managed."""
    admission: str = ""
    """Where another process serves the webhooks; empty: this one does."""
    any_port: bool = False
    """Whether a port that is in use is replaced by a free one: no configuration file has chosen it."""

    @property
    def lease_namespace(self) -> str:
        """From the command line, the configuration, the pod's own namespace or the kubeconfig."""
        configured = self.configuration.leader_election.resource_namespace
        return self.namespace or configured or _pods_namespace() or self.connection.namespace

    @property
    def operator_namespace(self) -> str:
        """The namespace of the operator's own objects, such as the Secret of its certificate."""
        return self.namespace or _pods_namespace() or self.connection.namespace


def _pods_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    file = folder / "namespace"
    return file.read_text().strip() if file.exists() else ""


async def operate(settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises ListenError, ConfigError, or PreflightError (the cluster lacks what
    is enabled) before any write, and LeadershipEnded when leadership is lost."""
    python_gc.raise_thresholds()
    raise_file_limit()
    stop_requested = stop_signals("operator")
    transport = HttpTransport(settings.connection)
    topology_aware = settings.configuration.topology_aware_scheduling.enabled
    manager = Manager(
        transport,
        grace=timing.SHUTDOWN_GRACE,
        init_image=settings.init_image,
        topology_aware=topology_aware,
        start_order=settings.configuration.start_order.enabled,
        backends=settings.backends,
        dynamo=DynamoSettings.of(settings.configuration, settings.backends, settings.fabrics),
        fabrics=settings.fabrics,
        auto_fabric=settings.configuration.network.auto_mnnvl_enabled,
        pods_per_set=settings.configuration.limits.pods_per_set,
        namespaces=settings.configuration.namespaces,
    )
    try:
        if settings.configuration.dynamo.enabled:
            await reject_dynamo_operator(Client(transport))
        network = settings.configuration.network
        if network.auto_mnnvl_enabled and settings.fabrics.auto is not None:
            await preflight(Client(transport), settings.fabrics.auto, network.auto_mnnvl_preflight)
        webhooks = None if settings.admission else _webhooks(settings, manager, Client(transport))
        gate = webhooks or AdmissionGate(settings.admission)

        async def not_ready_reasons() -> list[str]:
            return manager.caches.unsynced or await gate.not_ready_reasons()

        served = [*endpoints(settings.configuration, not_ready_reasons, Client(transport))]
        coroutines = [stop_requested.wait(), manager.watch(), _lead(settings, transport, manager)]
        if webhooks is not None:
            served.append(webhooks.endpoint)
            coroutines.append(webhooks.run())
        async with serving(served, any_port=settings.any_port):
            log.info("started", key="operator", action="watch", reason=settings.connection.server)
            await run_until_first_ends(*coroutines)
    finally:
        await transport.close()
    log.info("stopped", key="operator", action="exit", reason="stop signal received")


def _webhooks(settings: OperatorSettings, manager: Manager, client: Client) -> AdmissionWebhooks:
    return AdmissionWebhooks(
        settings.configuration,
        manager.caches,
        client,
        settings.operator_namespace,
        settings.account,
        settings.backends,
        lambda: manager.graphs is not None and manager.graphs.leader_worker_sets,
        settings.fabrics,
        lambda: manager.graphs is None or manager.graphs.inference_pools,
    )


async def reject_dynamo_operator(client: Client) -> None:
    """Raises ConfigError if Dynamo's own operator serves DynamoGraphDeployments. If the API server does not
    answer yet, `grove.operator.reconcilers.dynamo.serve` checks again before any write."""
    try:
        why = await dynamo_operator_conflict(client)
    except KubeError:
        return
    if why:
        raise ConfigError(why)


async def _lead(settings: OperatorSettings, transport: HttpTransport, manager: Manager) -> None:
    """Run for election once the caches are synced, and lead when elected."""
    await manager.synced.wait()
    election = settings.configuration.leader_election
    if not election.enabled:
        await manager.lead(transport)
        return
    client = Client(transport)
    name, identity = election.resource_name, new_identity()
    elector = Elector(client, settings.lease_namespace, name, identity, timing=timing_of(election))
    log.info(
        "following", key=f"{settings.lease_namespace}/{name}", action="run for election", reason=identity
    )
    async with elector.lead() as leadership:
        fenced = FencedTransport(transport, leadership, elector.timing.longest_write)
        await run_until_first_ends(leadership.ended(), manager.lead(fenced))
        raise LeadershipEnded(await leadership.ended())


def timing_of(election: LeaderElection) -> LeaseTiming:
    """The durations of the validated configuration."""
    written = (election.lease_duration, election.renew_deadline, election.retry_period)
    return LeaseTiming(*(durations.parse(text).total_seconds() for text in written))


async def run_until_first_ends(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run all until one ends; cancel and await the others, and raise what any of them raised."""
    tasks = [
        asyncio.create_task(coroutine, name=getattr(coroutine, "__qualname__", None))
        for coroutine in coroutines
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


def stop_signals(process: str) -> asyncio.Event:
    """An event that is set at SIGTERM or SIGINT. A second signal ends the process at once, by default."""
    loop, stop_requested = asyncio.get_running_loop(), asyncio.Event()

    def stop(number: signal.Signals) -> None:
        log.info("stopping", key=process, action="finish work in progress", reason=number.name)
        stop_requested.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    return stop_requested
