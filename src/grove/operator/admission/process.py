"""One admission process: the webhooks, their certificate, the few caches that rules read, and probes.

It shares nothing with an operator process but the configuration: a control loop that is busy, frozen or
restarting delays no admission request (docs/decisions/admission-process.md). Every replica serves.
"""

from __future__ import annotations

from grove.kube.client.client import Client
from grove.kube.client.transport import HttpTransport
from grove.kube.server.listener import raise_file_limit
from grove.logger import get_logger
from grove.operator import python_gc
from grove.operator.admission.watches import AdmissionWatches
from grove.operator.process import OperatorSettings, run_until_first_ends, stop_signals
from grove.operator.servers import endpoints, serving
from grove.operator.webhooks import AdmissionWebhooks

log = get_logger("grove.operator")


async def serve_admission(settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises ListenError or ConfigError before any write."""
    python_gc.raise_thresholds()
    raise_file_limit()
    stop_requested = stop_signals("admission")
    transport = HttpTransport(settings.connection)
    watches = AdmissionWatches(settings.configuration, settings.fabrics)
    try:
        admission = AdmissionWebhooks(
            settings.configuration,
            watches.caches,
            Client(transport),
            settings.operator_namespace,
            settings.account,
            settings.backends,
            watches.leader_worker_sets,
            settings.fabrics,
            watches.inference_pools,
        )

        async def not_ready_reasons() -> list[str]:
            return watches.unsynced or await admission.not_ready_reasons()

        others = endpoints(settings.configuration, not_ready_reasons, Client(transport))
        async with serving((*others, admission.endpoint), any_port=settings.any_port):
            log.info("started", key="admission", action="watch", reason=settings.connection.server)
            await run_until_first_ends(stop_requested.wait(), watches.run(Client(transport)), admission.run())
    finally:
        await transport.close()
    log.info("stopped", key="admission", action="exit", reason="stop signal received")
