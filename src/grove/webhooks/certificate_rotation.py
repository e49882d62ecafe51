"""Creates and renews the certificate of the webhooks, and writes the CA into their configurations.

Every operator replica does so; the Secret and resourceVersions coordinate them. Nothing polls: a pass runs
when a certificate is due for renewal, and when one of our webhook configurations is created, changed or loses
its caBundle. Another replica that writes a new CA triggers a pass the same way.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

from grove import timing
from grove.kube.certs.certificate_secret import CertificateManager
from grove.kube.certs.serving_context import ServingContext
from grove.kube.client.client import Client
from grove.kube.client.retry import Backoff
from grove.logger import get_logger
from grove.webhooks.configuration_watch import WebhookConfigurations
from grove.webhooks.registrations import SERVICE

log = get_logger("grove.webhooks")


class CertificateRotator:
    """Renews the certificate of one operator replica, concurrently with the other replicas."""

    def __init__(
        self,
        client: Client,
        serving: ServingContext,
        configurations: WebhookConfigurations,
        *,
        namespace: str,
        secret: str,
        propagation_delay: float = timing.CERTIFICATE_PROPAGATION,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._serving, self._configurations = client, serving, configurations
        self._namespace, self._secret = namespace, secret
        self.propagation_delay, self.wall_clock = propagation_delay, wall_clock
        self.last_error = ""
        """Why the last pass failed; empty if it did not."""

    async def run(self) -> None:
        """Refresh now, whenever it is due and whenever the configurations change, until cancelled."""
        backoff, rng, failures = Backoff(*timing.CERTIFICATE_BACKOFF), random.Random(), 0  # noqa: S311 - jitter
        await self._configurations.synced()
        while True:
            self._configurations.changed.clear()
            begun = time.monotonic()
            try:
                due = await self.refresh()
                interval = min(
                    timing.CERTIFICATE_MAX_INTERVAL,
                    max(timing.CERTIFICATE_MIN_INTERVAL, (due - self.wall_clock()).total_seconds()),
                )
                self.last_error, failures = "", 0
            except Exception as problem:  # admission keeps serving with the current certificate
                self.last_error = str(problem) or type(problem).__name__
                interval, failures = backoff.pause(failures, rng), failures + 1
                log.warning("certificate not renewed", key=self._key, action="retry", reason=self.last_error)
            await _wait(self._configurations.changed, interval)
            await asyncio.sleep(max(0.0, begun + timing.CERTIFICATE_MIN_INTERVAL - time.monotonic()))

    async def refresh(self) -> datetime:
        """One pass; returns when the next one is due."""
        before = self._serving.current_pair
        certificate_manager = CertificateManager(
            self._client,
            self._serving,
            namespace=self._namespace,
            secret=self._secret,
            hosts=hosts(self._namespace, self._configurations),
            webhooks=self._configurations.present,
            known_authorities=b"".join(
                dict.fromkeys(client_config.ca_bundle for client_config in self._configurations)
            ),
            propagation_delay=self.propagation_delay,
            wall_clock=self.wall_clock,
        )
        due = await certificate_manager.refresh()
        if self._serving.current_pair is not before:
            log.info("certificate loaded", key=self._key, action="serve", reason=f"due {due:%Y-%m-%d}")
        return due

    @property
    def _key(self) -> str:
        return f"{self._namespace}/{self._secret}"


def hosts(namespace: str, configurations: WebhookConfigurations) -> tuple[str, ...]:
    """The DNS names of the certificate: those of the Service, and those in the webhook configurations."""
    service = (f"{SERVICE}.{namespace}.svc", SERVICE, f"{SERVICE}.{namespace}")
    full = (f"{SERVICE}.{namespace}.svc.cluster.local",)
    configured = sorted(
        client_config.host
        for client_config in configurations
        if client_config.host and client_config.host.isascii()
    )
    return tuple(dict.fromkeys((*service, *full, *configured)))


async def _wait(event: asyncio.Event, at_most: float) -> None:
    try:
        async with asyncio.timeout(at_most):
            await event.wait()
    except TimeoutError:
        return
