"""`python -m grove.local.standins.dra KUBECONFIG`: a component of the local cluster."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import structlog

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.standins.dra.driver import DraStandIn


async def _run(kubeconfig: Path) -> None:
    async with Client(config.load(kubeconfig)) as client:
        await DraStandIn(client).run()


structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
asyncio.run(_run(Path(sys.argv[1])))
