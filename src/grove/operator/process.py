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

from grove.api import durations
from grove.api.config import LeaderElection, OperatorConfiguration
from grove.fabrics.registry import Providers
from grove.kube.client import Client
from grove.kube.config import SERVICE_ACCOUNT, Config
from grove.kube.elector import Elector
from grove.kube.errors import ConfigError, KubeError
from grove.kube.leadership import FencedTransport
from grove.kube.lease import Timing, new_identity
from grove.kube.transport import HttpTransport
from grove.operator import garbage
from grove.operator.admission import Admission
from grove.operator.fabrics import preflight
from grove.operator.graph_layer import Layer, foreign
from grove.operator.manager import Manager
from grove.operator.servers import endpoints, serving
from grove.schedulers.registry import Backends

log = structlog.get_logger("grove.operator")

_GRACE = 2.0  # for work in progress, so that with the lease released all is over within five seconds


class LeadershipEnded(Exception):
    """We led and may no longer; the message says why."""


class Settings(Struct, frozen=True):
    """All that a process needs to know."""

    configuration: OperatorConfiguration
    connection: Config
    namespace: str = ""
    """Where the lease is, if the command line says so."""
    init_image: str = ""
    """The image of the init container that start order needs."""
    account: str = ""
    """The ServiceAccount that we run as, if we were told."""
    backends: Backends | None = None
    """The schedulers that workloads may use; None: they are told nothing."""
    fabrics: Providers = Providers()
    """The vendors whose fabric domains are managed."""

    @property
    def lease_namespace(self) -> str:
        """By command line, by configuration, by the pod we run in, by kubeconfig."""
        configured = self.configuration.leader_election.resource_namespace
        return self.namespace or configured or _pods_namespace() or self.connection.namespace

    @property
    def home(self) -> str:
        """Where we live, and keep what is ours."""
        return self.namespace or _pods_namespace() or self.connection.namespace


def _pods_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    file = folder / "namespace"
    return file.read_text().strip() if file.exists() else ""


async def operate(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises CannotListen or ConfigError before anything is done,
    Unfit if the cluster lacks what is enabled, LeadershipEnded after."""
    garbage.look_seldom()
    told_to_stop = _signals()
    transport = HttpTransport(settings.connection)
    topology_aware = settings.configuration.topology_aware_scheduling.enabled
    manager = Manager(
        transport,
        grace=_GRACE,
        init_image=settings.init_image,
        topology_aware=topology_aware,
        backends=settings.backends,
        dynamo=Layer.of(settings.configuration, settings.backends, settings.fabrics),
        fabrics=settings.fabrics,
        auto_fabric=settings.configuration.network.auto_mnnvl_enabled,
        pods_per_set=settings.configuration.limits.pods_per_set,
    )
    try:
        if settings.configuration.dynamo.enabled:
            await refuse_foreign(Client(transport))
        if settings.configuration.network.auto_mnnvl_enabled and settings.fabrics.auto is not None:
            await preflight(Client(transport), settings.fabrics.auto)
        admission = Admission(
            settings.configuration,
            manager.caches,
            Client(transport),
            settings.home,
            settings.account,
            settings.backends,
            lambda: manager.graphs is not None and manager.graphs.leader_worker_sets,
            settings.fabrics,
        )

        async def troubles() -> list[str]:
            return manager.caches.unsynced or await admission.troubles()

        async with serving([*endpoints(settings.configuration, troubles), admission.endpoint]):
            log.info("started", key="operator", action="watch", reason=settings.connection.server)
            works = (manager.watch(), admission.run(), _act(settings, transport, manager))
            await first(told_to_stop.wait(), *works)
    finally:
        await transport.close()
    log.info("stopped", key="operator", action="exit", reason="told to stop")


async def refuse_foreign(client: Client) -> None:
    """Raises ConfigError if Dynamo's own operator serves what we were told to. A server that does not answer
    yet is asked again before anything is done."""
    try:
        why = await foreign(client)
    except KubeError:
        return
    if why:
        raise ConfigError(why)


async def _act(settings: Settings, transport: HttpTransport, manager: Manager) -> None:
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
        await first(leadership.ended(), manager.lead(fenced))
        raise LeadershipEnded(await leadership.ended())


def timing_of(election: LeaderElection) -> Timing:
    """The durations of the configuration, which has been checked."""
    written = (election.lease_duration, election.renew_deadline, election.retry_period)
    return Timing(*(durations.parse(text).total_seconds() for text in written))


async def first(*works: Coroutine[Any, Any, object]) -> None:
    """Run all until one ends; the others are cancelled and awaited, and what any of them raised is raised."""
    tasks = [asyncio.create_task(work, name=getattr(work, "__qualname__", None)) for work in works]
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
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def stop(number: signal.Signals) -> None:
        log.info("stopping", key="operator", action="finish what is under way", reason=number.name)
        told.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    return told
