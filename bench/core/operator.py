"""The operator as a separate process: python -m bench.core.operator KUBECONFIG."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import structlog

from grove.api.configuration.types import Scheduler
from grove.kube.auth import config
from grove.kube.client.transport import HttpTransport
from grove.operator import python_gc
from grove.operator.manager import Manager
from grove.schedulers.registry import backends


async def main(kubeconfig: str) -> None:
    python_gc.raise_thresholds()
    manager = Manager(HttpTransport(config.load(Path(kubeconfig))), backends=backends(Scheduler()))
    running = asyncio.create_task(manager.run())
    await manager.synced.wait()
    print("ready", flush=True)
    await running


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(main(sys.argv[1]))
