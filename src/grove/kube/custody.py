"""Keeps a webhook server's credentials in a Secret, and tells the API server whom to trust.

All replicas share the Secret. Whoever finds it empty or due writes it, with a precondition; whoever comes
second takes what the first wrote. A new authority is announced in the webhook configurations before a
certificate of it is shown, and the retired one stays announced until it expires: no call fails on the way.
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

from grove.api.meta import ObjectMeta
from grove.kube.certificates import Credentials, KeyPair, next_rotation, renewed, trusted
from grove.kube.client import JSON, Client, Object
from grove.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from grove.kube.resource import SECRETS, Resource
from grove.kube.serving import ServingContext

_TRIES = 5


class _Secret(Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}


class Custody:
    """Looks after the credentials of one server; all its replicas do it side by side."""

    def __init__(
        self,
        client: Client,
        serving: ServingContext,
        *,
        namespace: str,
        secret: str,
        hosts: tuple[str, ...],
        webhooks: Iterable[tuple[Resource, str]] = (),
        announced: bytes = b"",
        spread: float = 5.0,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._serving = serving
        self._namespace = namespace
        self._secret = secret
        self._hosts = hosts
        self._webhooks = tuple(webhooks)
        self._announced = announced
        self._spread = spread
        self._wall = wall

    async def refresh(self) -> datetime:
        """Read or renew the credentials, announce their authority, show them. Returns when they are due."""
        credentials = await self._current()
        for resource, name in self._webhooks:
            with suppress(NotFound):  # a configuration that has gone needs nobody's trust
                await announce(self._client, resource, name, credentials.trust)
        shown = self._serving.shown
        if shown != credentials.serving:
            if shown is not None and trusted(shown, credentials.trust):
                # API servers learn of a new authority by watching, whichever replica announced it: until all
                # have, the old certificate is the one to show.
                await asyncio.sleep(self._spread)
            self._serving.show(credentials.serving)
        return next_rotation(credentials)

    async def _current(self) -> Credentials:
        for _ in range(_TRIES):
            stored = await self._read()
            known = credentials_in(stored.data) if stored else None
            wanted = renewed(known, self._hosts, self._wall(), self._announced)
            if wanted is known:
                return known
            try:
                await self._write(stored, wanted)
            except (AlreadyExists, Conflict):
                continue  # another replica was faster: see what it wrote
            return wanted
        raise KubeError(f"Secret {self._namespace}/{self._secret} keeps changing: see who else writes it")

    async def _read(self) -> _Secret | None:
        try:
            return await self._client.get(SECRETS, self._secret, namespace=self._namespace, as_type=_Secret)
        except NotFound:
            return None

    async def _write(self, stored: _Secret | None, credentials: Credentials) -> None:
        content = {"data": secret_data(credentials)}
        if stored is None:
            body = {"metadata": {"name": self._secret}, "type": "kubernetes.io/tls", **content}
            await self._client.create(SECRETS, body, namespace=self._namespace, as_type=Object)
        else:
            body = {"metadata": {"resourceVersion": stored.metadata.resource_version}, **content}
            await self._client.patch(SECRETS, self._secret, body, namespace=self._namespace, as_type=Object)


async def announce(client: Client, resource: Resource, name: str, trust: bytes) -> bool:
    """Have all webhooks of a configuration trust the authorities. Writes only if one does not; tells if."""
    for _ in range(_TRIES):
        patch = trust_patch(await client.get(resource, name, as_type=dict), trust)
        if not patch:
            return False
        try:
            await client.patch(resource, name, patch, kind=JSON, as_type=Object)
        except Conflict:
            continue  # it changed under our hands, and the indices may mean other webhooks
        return True
    raise KubeError(f"{resource.kind} {name} keeps changing: see who else writes its caBundle")


def trust_patch(configuration: Mapping[str, Any], trust: bytes) -> list[dict[str, Any]]:
    """The JSON patch that sets the caBundle where it is another; empty if nowhere."""
    bundle = base64.b64encode(trust).decode()
    sets = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index, webhook in enumerate(configuration.get("webhooks") or ())
        if webhook["clientConfig"].get("caBundle") != bundle
    ]
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *sets] if sets else []


def secret_data(credentials: Credentials) -> dict[str, str]:
    """The data of the Secret, under the names that cert-manager and most rotators use."""
    content = {
        "ca.crt": credentials.trust,
        "ca.key": credentials.authority.key,
        "tls.crt": credentials.serving.certificate,
        "tls.key": credentials.serving.key,
    }
    return {key: base64.b64encode(value).decode() for key, value in content.items()}


def credentials_in(data: Mapping[str, str]) -> Credentials | None:
    """The credentials in a Secret, None if they are not whole."""
    try:
        content = {key: base64.b64decode(value, validate=True) for key, value in data.items()}
        first, *retired = [
            certificate.public_bytes(Encoding.PEM)
            for certificate in x509.load_pem_x509_certificates(content["ca.crt"])
        ]
        return Credentials(
            KeyPair(first, content["ca.key"]), KeyPair(content["tls.crt"], content["tls.key"]), tuple(retired)
        )
    except (KeyError, ValueError, binascii.Error):
        return None
