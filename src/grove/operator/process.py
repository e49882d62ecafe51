"""One operator process: caches that are always warm, a turn to act, and a way to end.

    configuration ─► transport ─► caches ─► election ─► controller
                        └► probes, metrics, webhooks      (leader only)

The process ends when it is told to, or when it led and may no longer: there is one way to begin, and it is
the one that is tested most (docs/decisions/lost-leadership.md).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import structlog
from msgspec import Struct

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
from grove.operator import python_gc
from grove.operator.dynamo_settings import DynamoSettings, dynamo_operator_conflict
from grove.operator.fabric_providers import preflight
from grove.operator.manager import Manager
from grove.operator.servers import endpoints, serving
from grove.operator.webhooks import AdmissionWebhooks
from grove.schedulers.registry import SchedulerBackends

log = structlog.get_logger("grove.operator")

_GRACE = 2.0  # for work in progress, so that with the lease released all is over within five seconds


class LeadershipEnded(Exception):
    """We led and may no longer; the message says why."""


class OperatorSettings(Struct, frozen=True):
    """All that a process needs to know."""

    configuration: OperatorConfiguration
    connection: Config
    namespace: str = ""
    """Where the lease is, if the command line says so."""
    init_image: str = ""
    """The image of the init container that start order needs."""
    account: str = ""
    """The ServiceAccount that we run as, if we were told."""
    backends: SchedulerBackends | None = None
    """The schedulers that workloads may use; None: they are told nothing."""
    fabrics: Providers = Providers()
    """The vendors whose fabric domains are managed."""

    @property
    def lease_namespace(self) -> str:
        """By command line, by configuration, by the pod we run in, by kubeconfig."""
        configured = self.configuration.leader_election.resource_namespace
        return self.namespace or configured or _pods_namespace() or self.connection.namespace

    @property
    def operator_namespace(self) -> str:
        """Where we live, and keep what is ours."""
        return self.namespace or _pods_namespace() or self.connection.namespace


def _pods_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    file = folder / "namespace"
    return file.read_text().strip() if file.exists() else ""


async def operate(settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises CannotListen or ConfigError before anything is done,
    Unfit if the cluster lacks what is enabled, LeadershipEnded after."""
    python_gc.raise_thresholds()
    stop_requested = _signals()
    transport = HttpTransport(settings.connection)
    topology_aware = settings.configuration.topology_aware_scheduling.enabled
    manager = Manager(
        transport,
        grace=_GRACE,
        init_image=settings.init_image,
        topology_aware=topology_aware,
        backends=settings.backends,
        dynamo=DynamoSettings.of(settings.configuration, settings.backends, settings.fabrics),
        fabrics=settings.fabrics,
        auto_fabric=settings.configuration.network.auto_mnnvl_enabled,
        pods_per_set=settings.configuration.limits.pods_per_set,
    )
    try:
        if settings.configuration.dynamo.enabled:
            await reject_dynamo_operator(Client(transport))
        if settings.configuration.network.auto_mnnvl_enabled and settings.fabrics.auto is not None:
            await preflight(Client(transport), settings.fabrics.auto)
        admission = AdmissionWebhooks(
            settings.configuration,
            manager.caches,
            Client(transport),
            settings.operator_namespace,
            settings.account,
            settings.backends,
            lambda: manager.graphs is not None and manager.graphs.leader_worker_sets,
            settings.fabrics,
        )

        async def not_ready_reasons() -> list[str]:
            return manager.caches.unsynced or await admission.not_ready_reasons()

        async with serving([*endpoints(settings.configuration, not_ready_reasons), admission.endpoint]):
            log.info("started", key="operator", action="watch", reason=settings.connection.server)
            coroutines = (manager.watch(), admission.run(), _lead(settings, transport, manager))
            await run_until_first_ends(stop_requested.wait(), *coroutines)
    finally:
        await transport.close()
    log.info("stopped", key="operator", action="exit", reason="told to stop")


async def reject_dynamo_operator(client: Client) -> None:
    """Raises ConfigError if Dynamo's own operator serves what we were told to. A server that does not answer
    yet is asked again before anything is done."""
    try:
        why = await dynamo_operator_conflict(client)
    except KubeError:
        return
    if why:
        raise ConfigError(why)


async def _lead(settings: OperatorSettings, transport: HttpTransport, manager: Manager) -> None:
    """Lead, in our turn. Who does not see the cluster yet does not stand for election."""
    await manager.synced.wait()
    election = settings.configuration.leader_election
    if not election.enabled:
        await manager.lead(transport)
        return
    client = Client(transport)
    name, identity = election.resource_name, new_identity()
    elector = Elector(client, settings.lease_namespace, name, identity, timing=timing_of(election))
    log.info("following", key=f"{settings.lease_namespace}/{name}", action="stand", reason=identity)
    async with elector.lead() as leadership:
        fenced = FencedTransport(transport, leadership, elector.timing.longest_write)
        await run_until_first_ends(leadership.ended(), manager.lead(fenced))
        raise LeadershipEnded(await leadership.ended())


def timing_of(election: LeaderElection) -> LeaseTiming:
    """The durations of the configuration, which has been checked."""
    written = (election.lease_duration, election.renew_deadline, election.retry_period)
    return LeaseTiming(*(durations.parse(text).total_seconds() for text in written))


async def run_until_first_ends(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run all until one ends; the others are cancelled and awaited, and what any of them raised is raised."""
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


def _signals() -> asyncio.Event:
    """Set when the process is told to stop. Told again, it stops at once, as processes do."""
    loop, stop_requested = asyncio.get_running_loop(), asyncio.Event()

    def stop(number: signal.Signals) -> None:
        log.info("stopping", key="operator", action="finish what is under way", reason=number.name)
        stop_requested.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    return stop_requested
