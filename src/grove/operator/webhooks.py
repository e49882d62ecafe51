"""The admission webhooks of one operator process: their endpoint, certificate and readiness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from grove import timing
from grove.api.configuration.types import CertProvisionMode, OperatorConfiguration, WebhookServer
from grove.api.naming.well_known import OperatorEnv
from grove.dynamo.context import GraphContext
from grove.fabrics.registry import Providers, providers
from grove.kube.certs.serving_context import FileServingContext, ServingContext
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError
from grove.kube.server.connections import ConnectionLimits
from grove.kube.server.refusals import Refusals
from grove.operator.caches.registry import Caches
from grove.operator.servers import Endpoint
from grove.rules.model import Facts
from grove.schedulers.registry import SchedulerBackends
from grove.webhooks import registrations, selfcheck, server
from grove.webhooks.certificate_rotation import CertificateRotator
from grove.webhooks.cluster_facts import ClusterFacts
from grove.webhooks.configuration_watch import WebhookClientConfig, WebhookConfigurations
from grove.webhooks.conversion.registration import ConversionRegistration
from grove.webhooks.conversion.review import ConversionReviewer
from grove.webhooks.dynamo_facts import GraphClusterFacts
from grove.webhooks.reviewer import Reviewer

ACCOUNT = OperatorEnv.SERVICE_ACCOUNT
"""The environment variable that names the operator's ServiceAccount."""
LIMITS = ConnectionLimits(timing.WEBHOOK_CONNECTIONS, timing.WEBHOOK_CONNECTIONS_PER_PEER)


class AdmissionWebhooks:
    """Serves on every operator replica, leader or not. Raises ConfigError if the configuration does not allow
    it. `leader_worker_sets` and `inference_pools` return whether the cluster serves these kinds."""

    def __init__(
        self,
        config: OperatorConfiguration,
        caches: Caches,
        client: Client,
        operator_namespace: str,
        account: str,
        in_use: SchedulerBackends | None = None,
        leader_worker_sets: Callable[[], bool] = lambda: False,
        fabrics: Providers | None = None,
        inference_pools: Callable[[], bool] = lambda: True,
    ) -> None:
        where, authorizer = config.server.webhooks, config.authorizer.enabled
        if authorizer and not account:
            raise ConfigError(
                f"authorizer.enabled: the operator's ServiceAccount is not known: set {ACCOUNT}"
            )
        facts = Facts.of(
            config,
            operator_user=registrations.account(operator_namespace, account) if account else "",
            in_use=in_use,
            fabrics=providers(config.fabrics, packing=config.network.pack_domains)
            if fabrics is None
            else fabrics,
        )
        cluster_facts, dynamo = ClusterFacts(caches, client, facts), config.dynamo.enabled
        graphs = (
            GraphClusterFacts(
                caches, cluster_facts, GraphContext.of(config), leader_worker_sets, inference_pools
            )
            if dynamo
            else None
        )
        reviewer = Reviewer(cluster_facts, authorizer=authorizer, graphs=graphs)
        manual_certificate = where.cert_provision_mode is CertProvisionMode.MANUAL
        self._client = client
        self._configurations = WebhookConfigurations(
            registrations.served(authorizer=authorizer, dynamo=dynamo)
        )
        self.serving = _certificate_files(where) if manual_certificate else ServingContext()
        self.rotator = (
            None if manual_certificate else self._automatic_rotation(operator_namespace, where.secret_name)
        )
        # An operator of some namespaces may change nothing that all of them share.
        converts = dynamo and GraphContext.of(config).converts
        self._conversion = ConversionRegistration(waits_for_ca=not manual_certificate) if converts else None
        self.address: tuple[str, int] | None = None
        refusals = Refusals("webhooks")
        self.endpoint = Endpoint(
            "server.webhooks.port",
            where.bind_address,
            where.port,
            server.runner(
                server.application(refusals, reviewer, *([ConversionReviewer()] if dynamo else [])), refusals
            ),
            refusals,
            LIMITS,
            self.serving.context,
            self._opened,
        )

    def _automatic_rotation(self, operator_namespace: str, secret: str) -> CertificateRotator:
        return CertificateRotator(
            self._client, self.serving, self._configurations, namespace=operator_namespace, secret=secret
        )

    def _opened(self, address: tuple[str, int]) -> None:
        host, port = address
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
        self.address = loopback.get(host, host), port

    async def run(self) -> None:
        """Watch the webhook configurations and renew the certificate, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            # Automatic rotation writes the caBundle, so it must read the configurations; with a certificate
            # from files they are only read to check that the API server trusts it.
            tasks.create_task(self._configurations.watch(self._client, needed=self.rotator is not None))
            if self.rotator is not None:
                tasks.create_task(self.rotator.run())
            if self._conversion is not None:
                tasks.create_task(self._conversion.run(self._client))

    async def not_ready_reasons(self) -> list[str]:
        """Why an API server that calls the webhooks would fail; empty if they answer."""
        if not self._configurations.ready:
            return ["the webhook configurations"]
        if not self.serving.ready or self.address is None:
            why = self.rotator.last_error if self.rotator is not None else ""
            return [f"the webhooks' certificate ({why})" if why else "the webhooks' certificate"]
        client_configs: list[WebhookClientConfig | None] = [*self._configurations]
        found = [
            await selfcheck.failure(self.address, client_config) for client_config in client_configs or [None]
        ]
        return list(filter(None, dict.fromkeys(found)))


def _certificate_files(where: WebhookServer) -> FileServingContext:
    folder = Path(where.server_cert_dir)
    try:
        return FileServingContext(folder / "tls.crt", folder / "tls.key")
    except ConfigError as problem:
        raise ConfigError(f"server.webhooks.serverCertDir: {problem}") from None
