"""Stops and starts the scheduler of a cluster that a test has for itself."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from grove.local.cluster import command_lines, ports
from grove.local.cluster.health import Probe, wait_until_healthy
from grove.local.cluster.lifecycle import LocalCluster, stop_components
from grove.local.cluster.pki import Pki
from grove.local.cluster.processes import spawn
from grove.local.private_files import write_private
from tests.clusters import programs

NAME = "kube-scheduler"


async def restart_scheduler(cluster: LocalCluster) -> None:
    """Stop the scheduler, and start it again with the client limits that it has by default."""
    await asyncio.to_thread(_restart, cluster)


def _restart(cluster: LocalCluster) -> None:
    state, record = cluster.state, cluster.record
    stop_components(state, (NAME,))
    written = command_lines.scheduler_config(state)
    for limit in command_lines.SCHEDULER_TUNING:
        with suppress(KeyError):
            del written["clientConnection"][limit]
    write_private(state.config("kube-scheduler.json"), json.dumps(written).encode())
    pki, binary = Pki(state.pki), programs(record.settings.kubernetes)[NAME]
    line = command_lines.scheduler(binary, state, record.settings, record.ports, pki)
    assert ports.becomes_free(record.ports.scheduler), f"the port of the stopped {NAME} is still in use"
    process = spawn(line, state.log(NAME), state.pid(NAME))

    def check() -> None:
        assert process.alive, state.log(NAME).read_text()[-2000:]

    wait_until_healthy(Probe(NAME, record.ports.scheduler, "/readyz"), pki.pair("ca").cert, check)
