"""The webhooks of one operator process: where they listen, with which certificate, and whether they work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from grove.api.config import CertProvisionMode, OperatorConfiguration, WebhookServer
from grove.api.marks import OperatorEnv
from grove.dynamo.surroundings import Surroundings
from grove.fabrics.registry import Providers, providers
from grove.kube.client import Client
from grove.kube.errors import ConfigError
from grove.kube.serving import FileServingContext, ServingContext
from grove.operator.caches import Caches
from grove.operator.servers import Endpoint
from grove.rules.model import Facts
from grove.schedulers.registry import Backends
from grove.webhooks import registrations, selfcheck, server
from grove.webhooks.callers import Caller, Callers
from grove.webhooks.graphs import GraphSight
from grove.webhooks.keeper import Keeper
from grove.webhooks.reviewer import Reviewer
from grove.webhooks.sight import Sight

ACCOUNT = OperatorEnv.SERVICE_ACCOUNT
"""The environment variable that says as whom we run."""


class Admission:
    """Answers on every replica, leader or not. Raises ConfigError if it never could. `sets` tells whether the
    cluster serves LeaderWorkerSets."""

    def __init__(
        self,
        config: OperatorConfiguration,
        caches: Caches,
        client: Client,
        home: str,
        account: str,
        in_use: Backends | None = None,
        sets: Callable[[], bool] = lambda: False,
        fabrics: Providers | None = None,
    ) -> None:
        where, authorizer = config.server.webhooks, config.authorizer.enabled
        if authorizer and not account:
            raise ConfigError(f"authorizer.enabled: who we are is not known: set {ACCOUNT}")
        facts = Facts.of(
            config,
            operator_user=registrations.account(home, account) if account else "",
            in_use=in_use,
            fabrics=providers(config.fabrics) if fabrics is None else fabrics,
        )
        sight, dynamo = Sight(caches, client, facts), config.dynamo.enabled
        graphs = GraphSight(caches, sight, Surroundings.of(config), sets) if dynamo else None
        reviewer = Reviewer(sight, authorizer=authorizer, graphs=graphs)
        brought = where.cert_provision_mode is CertProvisionMode.MANUAL
        self._client = client
        self._callers = Callers(registrations.served(authorizer=authorizer, dynamo=dynamo))
        self.serving = _files(where) if brought else ServingContext()
        self.keeper = None if brought else self._auto(home, where.secret_name)
        self.address: tuple[str, int] | None = None
        self.endpoint = Endpoint(
            "server.webhooks.port",
            where.bind_address,
            where.port,
            server.runner(server.application(reviewer)),
            self.serving.context,
            self._opened,
        )

    def _auto(self, home: str, secret: str) -> Keeper:
        return Keeper(self._client, self.serving, self._callers, namespace=home, secret=secret)

    def _opened(self, address: tuple[str, int]) -> None:
        host, port = address
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
        self.address = everywhere.get(host, host), port

    async def run(self) -> None:
        """Keep the certificate good, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            # Who injects must see the configurations; for a brought certificate they only tell who trusts it.
            tasks.create_task(self._callers.watch(self._client, needed=self.keeper is not None))
            if self.keeper is not None:
                tasks.create_task(self.keeper.run())

    async def troubles(self) -> list[str]:
        """What an API server that calls us waits for; empty if it is answered."""
        if not self._callers.known:
            return ["the webhook configurations"]
        if not self.serving.ready or self.address is None:
            why = self.keeper.trouble if self.keeper is not None else ""
            return [f"the webhooks' certificate ({why})" if why else "the webhooks' certificate"]
        callers: list[Caller | None] = [*self._callers]
        found = [await selfcheck.trouble(self.address, caller) for caller in callers or [None]]
        return list(filter(None, dict.fromkeys(found)))


def _files(where: WebhookServer) -> FileServingContext:
    folder = Path(where.server_cert_dir)
    try:
        return FileServingContext(folder / "tls.crt", folder / "tls.key")
    except ConfigError as problem:
        raise ConfigError(f"server.webhooks.serverCertDir: {problem}") from None
