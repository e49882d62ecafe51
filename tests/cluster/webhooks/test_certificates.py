"""Webhook certificates on the real API server: issued, shared by replicas, restored, rotated under load,
provided by the user, and invalid."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grove.kube.auth import config
from grove.kube.certs.certificate_secret import parse_secret_data, secret_data
from grove.kube.certs.certificates import (
    AUTHORITY_LIFETIME,
    SERVING_LIFETIME,
    KeyPair,
    ServingCredentials,
    issue_authority,
    issue_serving,
)
from grove.kube.client.client import JSON, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from grove.local.cluster.lifecycle import LocalCluster
from grove.webhooks.registrations import DEFAULT_SET, VALIDATE_SET
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import (
    Replica,
    admitting,
    eventually,
    good,
    registered,
    registering,
    replica,
    until_called,
)

pytestmark = pytest.mark.cluster

SECRET = "grove-webhook-server-cert"
HOSTS = ("127.0.0.1",)


async def credentials(client: Client, namespace: str) -> ServingCredentials:
    stored = await client.get(SECRETS, SECRET, namespace=namespace, as_type=dict)
    found = parse_secret_data(stored["data"])
    assert found is not None
    return found


async def bundle(client: Client) -> bytes:
    stored = await client.get(VALIDATING_WEBHOOKS, VALIDATE_SET.name, as_type=dict)
    return base64.b64decode(stored["webhooks"][0]["clientConfig"]["caBundle"])


async def call(client: Client, namespace: str) -> None:
    """Raises if the webhooks do not answer."""
    await client.create(SETS, good(), namespace=namespace, as_type=Object, dry_run=True)


async def store(client: Client, namespace: str, stored: ServingCredentials) -> None:
    body = {"metadata": {"name": SECRET}, "data": secret_data(stored)}
    await client.create(SECRETS, body, namespace=namespace, as_type=Object)


async def test_certificate_is_issued_stored_and_published(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        await call(client, namespace)
        issued = await credentials(client, namespace)
        assert await bundle(client) == issued.ca_bundle
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        await call(client, namespace)
    assert await credentials(client, namespace) == issued


async def test_all_replicas_serve_the_published_certificate(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    async with AsyncExitStack() as stack:
        connection = config.load(cluster.kubeconfig)
        replicas = [await stack.enter_async_context(replica(connection, namespace)) for _ in range(3)]
        await stack.enter_async_context(registering(client, registered(replicas[0].url, namespace)))
        for each in replicas:
            await each.until_ready()
        await until_called(client, namespace)
        assert (await credentials(client, namespace)).ca_bundle == await bundle(client)
        for each in replicas[1:]:
            await point_at(client, each)
            await each.until_ready()
            await until_called(client, namespace)


async def point_at(client: Client, to: Replica) -> None:
    """Changes the webhook configurations so that the API server calls this replica."""
    for registration in (DEFAULT_SET, VALIDATE_SET):
        where = {"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": to.url + registration.path}
        await client.patch(registration.resource, registration.name, [where], kind=JSON, as_type=Object)


async def test_overwritten_ca_bundle_is_restored(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    async with admitting(client, config.load(cluster.kubeconfig), namespace) as found:
        overwritten = registered(
            found.url, namespace, ca_bundle=issue_authority(datetime.now(UTC)).certificate
        )
        for body in overwritten:
            resource = MUTATING_WEBHOOKS if body["kind"] == MUTATING_WEBHOOKS.kind else VALIDATING_WEBHOOKS
            change = [{"op": "replace", "path": "/webhooks", "value": body["webhooks"]}]
            await client.patch(resource, body["metadata"]["name"], change, kind=JSON, as_type=Object)
        expected = (await credentials(client, namespace)).ca_bundle

        async def restored() -> bool:
            return await bundle(client) == expected

        await eventually(restored)
        await found.until_ready()
        await until_called(client, namespace)


@asynccontextmanager
async def two_replicas(
    client: Client, cluster: LocalCluster, namespace: str, wall_clock: datetime | None = None
) -> AsyncIterator[list[Replica]]:
    """Two replicas that serve webhooks; the API server calls the first one."""
    connection = config.load(cluster.kubeconfig)
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(replica(connection, namespace)) for _ in range(2)]
        for each in replicas:
            if wall_clock is not None:
                each.admission.rotator.wall_clock = lambda: wall_clock
        await stack.enter_async_context(registering(client, registered(replicas[0].url, namespace)))
        for each in replicas:
            await each.until_ready()
        await until_called(client, namespace)
        yield replicas


async def refresh_under_load(client: Client, namespace: str, replicas: list[Replica]) -> None:
    """Refreshes all replicas at once while sets are created continuously; raises if a call fails."""
    rotation = asyncio.gather(*(each.admission.rotator.refresh() for each in replicas))
    done = 0
    while not rotation.done():
        await asyncio.gather(*(call(client, namespace) for _ in range(4)))
        done += 1
    await rotation
    await call(client, namespace)
    assert done > 1


@pytest.mark.parametrize("part", ["authority", "serving"])
async def test_certificate_rotation_refuses_no_request(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, part: str
) -> None:
    """The clocks of the replicas are in the past until the certificate is due for renewal; then both replicas
    renew it at the same time."""
    now, both = datetime.now(UTC), part == "authority"
    aged = now - (AUTHORITY_LIFETIME if both else SERVING_LIFETIME) * 0.7
    old = issue_authority(aged if both else now)
    before = ServingCredentials(old, issue_serving(old, (*HOSTS, *names(namespace)), now if both else aged))
    await store(client, namespace, before)
    async with two_replicas(client, cluster, namespace, aged) as replicas:
        assert (await credentials(client, namespace)) == before
        for each in replicas:
            each.admission.rotator.wall_clock = lambda: datetime.now(UTC)
        await refresh_under_load(client, namespace, replicas)
        after = await credentials(client, namespace)
        assert [each.admission.serving.current_pair for each in replicas] == [after.serving] * 2
    assert after.serving != before.serving
    if both:
        assert after.authority != before.authority
        assert after.previous_authorities == (old.certificate,)


async def test_deleted_secret_refuses_no_request(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    async with two_replicas(client, cluster, namespace) as replicas:
        before = await credentials(client, namespace)
        await client.delete(SECRETS, SECRET, namespace=namespace, as_type=Object)
        await refresh_under_load(client, namespace, replicas)
        after = await credentials(client, namespace)
        assert [each.admission.serving.current_pair for each in replicas] == [after.serving] * 2
    assert after.authority != before.authority
    assert after.previous_authorities == (before.authority.certificate,)


def names(namespace: str) -> tuple[str, ...]:
    service = f"grove-operator.{namespace}"
    return (f"{service}.svc", "grove-operator", service, f"{service}.svc.cluster.local")


def provide(folder: Path, pair: KeyPair) -> dict[str, Any]:
    """Replaces both files, as an update of a mounted Secret does, and returns the webhook configuration."""
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        fresh = folder / f"{name}.new"
        fresh.write_bytes(content)
        fresh.rename(folder / name)
    return {"certProvisionMode": "manual", "serverCertDir": str(folder)}


async def test_manual_certificate_and_its_renewal_are_served(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    authority = issue_authority(now)
    first, second = (issue_serving(authority, HOSTS, now) for _ in range(2))
    connection = config.load(cluster.kubeconfig)
    async with replica(connection, namespace, webhooks=provide(tmp_path, first)) as found:
        bodies = registered(found.url, namespace, ca_bundle=authority.certificate)
        async with registering(client, bodies):
            await found.until_ready()
            await until_called(client, namespace)
            assert found.admission.serving.current_pair == first
            provide(tmp_path, second)
            await found.until_ready()
            assert found.admission.serving.current_pair == second
            await call(client, namespace)
            assert await bundle(client) == authority.certificate


async def test_untrusted_certificate_is_not_ready(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    trusted, other = issue_authority(now), issue_authority(now)
    good_pair, untrusted = issue_serving(trusted, HOSTS, now), issue_serving(other, HOSTS, now)
    other_host = issue_serving(trusted, ("10.1.2.3",), now)
    connection = config.load(cluster.kubeconfig)
    async with replica(connection, namespace, webhooks=provide(tmp_path, untrusted)) as found:
        bodies = registered(found.url, namespace, ca_bundle=trusted.certificate)
        async with registering(client, bodies):
            for pair in (untrusted, other_host):
                provide(tmp_path, pair)
                (reason,) = await certificate_reasons(found)
                assert reason.startswith("webhooks whose certificate the API server trusts as 127.0.0.1 (")
            provide(tmp_path, good_pair)
            await found.until_ready()
            (tmp_path / "tls.key").write_text("invalid")
            await found.until_ready()
            assert found.admission.serving.current_pair == good_pair


async def certificate_reasons(found: Replica) -> list[str]:
    """Why the replica is not ready once the configurations are loaded and the webhooks answer. Until then
    these two are the reasons, for long on a busy machine."""

    async def final() -> list[str]:
        reasons = await found.admission.not_ready_reasons()
        starting = reasons and ("configurations" in reasons[0] or "answer within" in reasons[0])
        return [] if starting else reasons

    return await eventually(final)
