"""Operators under test: they run in the process of the test, each on a transport of its own that may inject
faults (`grove.kube.testing.faults`), and with the rights of the chart's ServiceAccount."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from grove.fabrics.registry import Providers
from grove.kube.auth.config import Config
from grove.kube.client.retry import Backoff
from grove.kube.client.transport import HttpTransport, Transport
from grove.kube.leader.leadership import FencedTransport, Leadership
from grove.kube.leader.lease import LeaseTiming
from grove.kube.metrics import work_unexpected_errors_total
from grove.kube.testing.faults import FaultRates, FaultyTransport
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.manager import Manager
from grove.schedulers.registry import SchedulerBackends
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.world import PATIENCE, World, watching

__all__ = ["PATIENCE", "Operator", "World", "operating", "successive_operators", "watching"]

INIT_IMAGE = "example.com/grove-initc:test"


class Operator:
    """An operator that runs in this process, with its recorded calls and its faults."""

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        init_image: str = INIT_IMAGE,
        topology_aware: bool = False,
        backends: SchedulerBackends | None = None,
        dynamo: DynamoSettings | None = None,
        fabrics: Providers | None = None,
        auto_fabric: bool = False,
        workers: int = 64,
        fenced: bool = False,
        backoff: Backoff | None = None,
        **fault_options: Any,
    ) -> None:
        self.recorder = recorder
        self.faults = FaultyTransport(
            self.recorder.on(HttpTransport(config)), on_stop=self._stop, **fault_options
        )
        self.manager = Manager(
            self.faults,
            init_image=init_image,
            topology_aware=topology_aware,
            backends=backends,
            dynamo=dynamo,
            fabrics=fabrics,
            auto_fabric=auto_fabric,
            workers=workers,
            backoff=backoff,
        )
        self.stopped = asyncio.Event()
        """Set when a fault has stopped the operator."""
        self.task = asyncio.create_task(self.manager.run(_fenced(self.faults) if fenced else None))

    def _stop(self) -> None:
        self.stopped.set()
        self.task.cancel()

    def check(self) -> None:
        """Raise if the operator ended although it was neither cancelled nor stopped by a fault."""
        if self.task.done() and not self.stopped.is_set():
            raise AssertionError("the operator ended by itself") from self.task.exception()

    def dump(self) -> list[str]:
        last = [f"  {call}" for call in self.recorder.calls[-12:]]
        return [f"faults injected: {dict(self.faults.fault_counts)}; last calls:", *last]

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})
        await self.faults.close()


def _fenced(transport: Transport) -> Transport:
    """The transport of a leader whose lease does not expire."""
    leadership = Leadership()
    leadership.extend(float("inf"))
    return FencedTransport(transport, leadership, LeaseTiming().longest_write)


@asynccontextmanager
async def operating(
    world: World,
    *,
    seed: int = 0,
    rates: FaultRates | None = None,
    stop_after: int | None = None,
    recorder: Recorder | None = None,
    synced: bool = True,
    init_image: str = INIT_IMAGE,
    topology_aware: bool = False,
    backends: SchedulerBackends | None = None,
    dynamo: DynamoSettings | None = None,
    fabrics: Providers | None = None,
    auto_fabric: bool = False,
    workers: int = 64,
    fenced: bool = False,
    backoff: Backoff | None = None,
) -> AsyncIterator[Operator]:
    """An operator that runs until the block is left. `synced=False`: do not wait until its caches are synced.
    `fenced`: its writes have the time limits of a leader. `backoff`: of keys that fail."""
    operator = Operator(
        world.config,
        recorder or Recorder(world.namespace),
        init_image,
        topology_aware,
        backends,
        dynamo,
        fabrics,
        auto_fabric,
        workers,
        fenced,
        backoff,
        seed=seed,
        rates=rates,
        stop_after_writes=stop_after,
    )
    world.operators.append(operator)
    errors_before = unexpected_errors()
    try:
        if synced:
            async with asyncio.timeout(PATIENCE):
                await operator.manager.synced.wait()
        yield operator
        if not operator.task.done():
            await world.until_nothing_waits()
        assert unexpected_errors() == errors_before, "a pass failed by a bug: see `work failed` in the log"
    finally:
        await operator.end()
        if operator in world.operators:
            world.operators.remove(operator)


def unexpected_errors() -> float:
    """How many passes of all operators of this process have failed by a bug."""
    found = work_unexpected_errors_total.collect()
    return sum(each.value for metric in found for each in metric.samples if each.name.endswith("_total"))


@asynccontextmanager
async def successive_operators(
    world: World, write_limits: Iterator[int], **options: Any
) -> AsyncIterator[None]:
    """One operator after another: each stops right after as many writes as `write_limits` says, and the next
    one starts with the existing objects."""

    async def run_one() -> None:
        for writes in write_limits:
            async with operating(world, stop_after=writes, synced=False, **options) as operator:
                await operator.stopped.wait()

    task = asyncio.create_task(run_one())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
