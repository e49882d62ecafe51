"""The operator as a separate process: python -m bench.core.operator KUBECONFIG PLACEMENT, the latter as JSON:
keys of the configuration of the default scheduler."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

import structlog

from grove.api.configuration.types import DEFAULT_SCHEDULER, Scheduler, SchedulerProfile
from grove.kube.auth import config
from grove.kube.client.transport import HttpTransport
from grove.operator import python_gc
from grove.operator.manager import Manager
from grove.schedulers.registry import backends


async def main(kubeconfig: str, placement: dict[str, object]) -> None:
    python_gc.raise_thresholds()
    scheduler = Scheduler((SchedulerProfile(DEFAULT_SCHEDULER, placement),))
    transport = HttpTransport(config.load(Path(kubeconfig)))
    manager = Manager(transport, topology_aware=bool(placement), backends=backends(scheduler))
    running = asyncio.create_task(manager.run())
    await manager.synced.wait()
    print("ready", flush=True)
    await running


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
