"""Keeps a webhook server's certificate in a Secret, and its authority in the webhook configurations.

All replicas share the Secret. A replica that finds it empty or due for rotation writes it, with a
precondition; one that comes second reads what the first wrote. A new authority is published in the webhook
configurations before a certificate of it is served, and the previous one stays published until it expires, so
that no admission call fails during a rotation. What a certificate contains is decided in `certificates`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from grove import timing
from grove.api.meta import ObjectMeta
from grove.kube.certs.certificates import (
    KeyPair,
    ServingCredentials,
    is_issued_by,
    next_rotation,
    rotate_if_due,
)
from grove.kube.certs.serving_context import ServingContext
from grove.kube.client.client import JSON, Client, Object
from grove.kube.client.resource import SECRETS, Resource
from grove.kube.errors import AlreadyExists, Conflict, KubeError, NotFound


class _Secret(Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}


class CertificateManager:
    """Reads, rotates and publishes the credentials of one webhook server; each replica runs one."""

    def __init__(
        self,
        client: Client,
        serving: ServingContext,
        *,
        namespace: str,
        secret: str,
        hosts: tuple[str, ...],
        webhooks: Iterable[tuple[Resource, str]] = (),
        known_authorities: bytes = b"",
        propagation_delay: float = timing.CERTIFICATE_PROPAGATION,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._serving = serving
        self._namespace = namespace
        self._secret = secret
        self._hosts = hosts
        self._webhooks = tuple(webhooks)
        self._known_authorities = known_authorities
        self._propagation_delay = propagation_delay
        self._wall_clock = wall_clock

    async def refresh(self) -> datetime:
        """Read or rotate the credentials, publish their authority, serve them. Returns the next rotation."""
        credentials = await self._current()
        for resource, name in self._webhooks:
            with suppress(NotFound):  # a deleted configuration needs no caBundle
                await publish_ca_bundle(self._client, resource, name, credentials.ca_bundle)
        current_pair = self._serving.current_pair
        if current_pair != credentials.serving:
            if current_pair is not None and is_issued_by(current_pair, credentials.ca_bundle):
                # API servers learn of a new authority by watching, whichever replica published it: until all
                # have, the old certificate is served.
                await asyncio.sleep(self._propagation_delay)
            self._serving.use(credentials.serving)
        return next_rotation(credentials)

    async def _current(self) -> ServingCredentials:
        for _ in range(timing.CERTIFICATE_ATTEMPTS):
            stored = await self._read()
            known = parse_secret_data(stored.data) if stored else None
            wanted = rotate_if_due(known, self._hosts, self._wall_clock(), self._known_authorities)
            if wanted is known:
                return known
            try:
                await self._write(stored, wanted)
            except (AlreadyExists, Conflict):
                continue  # another replica was faster: see what it wrote
            return wanted
        raise KubeError(
            f"Secret {self._namespace}/{self._secret} keeps changing: check which other client writes it"
        )

    async def _read(self) -> _Secret | None:
        try:
            return await self._client.get(SECRETS, self._secret, namespace=self._namespace, as_type=_Secret)
        except NotFound:
            return None

    async def _write(self, stored: _Secret | None, credentials: ServingCredentials) -> None:
        content = {"data": secret_data(credentials)}
        if stored is None:
            body = {"metadata": {"name": self._secret}, "type": "kubernetes.io/tls", **content}
            await self._client.create(SECRETS, body, namespace=self._namespace, as_type=Object)
        else:
            body = {"metadata": {"resourceVersion": stored.metadata.resource_version}, **content}
            await self._client.patch(SECRETS, self._secret, body, namespace=self._namespace, as_type=Object)


async def publish_ca_bundle(client: Client, resource: Resource, name: str, ca_bundle: bytes) -> bool:
    """Set the caBundle of all webhooks of a configuration. Returns whether a write was needed."""
    for _ in range(timing.CERTIFICATE_ATTEMPTS):
        patch = ca_bundle_patch(await client.get(resource, name, as_type=dict), ca_bundle)
        if not patch:
            return False
        try:
            await client.patch(resource, name, patch, kind=JSON, as_type=Object)
        except Conflict:
            continue  # it changed meanwhile, and the indices may mean other webhooks
        return True
    raise KubeError(f"{resource.kind} {name} keeps changing: check which other client writes its caBundle")


def ca_bundle_patch(configuration: Mapping[str, Any], ca_bundle: bytes) -> list[dict[str, Any]]:
    """The JSON patch that sets the caBundle where it differs; empty if it differs nowhere."""
    bundle = base64.b64encode(ca_bundle).decode()
    sets = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index, webhook in enumerate(configuration.get("webhooks") or ())
        if webhook["clientConfig"].get("caBundle") != bundle
    ]
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *sets] if sets else []


def secret_data(credentials: ServingCredentials) -> dict[str, str]:
    """The data of the Secret, under the names that cert-manager and most rotators use."""
    content = {
        "ca.crt": credentials.ca_bundle,
        "ca.key": credentials.authority.key,
        "tls.crt": credentials.serving.certificate,
        "tls.key": credentials.serving.key,
    }
    return {key: base64.b64encode(value).decode() for key, value in content.items()}


def parse_secret_data(data: Mapping[str, str]) -> ServingCredentials | None:
    """The credentials in a Secret, None if they are incomplete."""
    try:
        content = {key: base64.b64decode(value, validate=True) for key, value in data.items()}
        first, *previous_authorities = [
            certificate.public_bytes(Encoding.PEM)
            for certificate in x509.load_pem_x509_certificates(content["ca.crt"])
        ]
        return ServingCredentials(
            KeyPair(first, content["ca.key"]),
            KeyPair(content["tls.crt"], content["tls.key"]),
            tuple(previous_authorities),
        )
    except (KeyError, ValueError, binascii.Error):
        return None
