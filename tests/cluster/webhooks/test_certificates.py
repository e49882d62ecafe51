"""Certificates on the real API server: made, shared, repaired, rotated under load, brought, broken."""

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


async def keep(client: Client, namespace: str, kept: ServingCredentials) -> None:
    body = {"metadata": {"name": SECRET}, "data": secret_data(kept)}
    await client.create(SECRETS, body, namespace=namespace, as_type=Object)


async def test_a_certificate_is_made_kept_and_announced(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        await call(client, namespace)
        made = await credentials(client, namespace)
        assert await bundle(client) == made.ca_bundle
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        await call(client, namespace)
    assert await credentials(client, namespace) == made


async def test_all_replicas_serve_what_is_announced(
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
    """From now on the API server calls this one."""
    for registration in (DEFAULT_SET, VALIDATE_SET):
        where = {"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": to.url + registration.path}
        await client.patch(registration.resource, registration.name, [where], kind=JSON, as_type=Object)


async def test_trust_that_an_upgrade_wiped_is_put_back(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    async with admitting(client, config.load(cluster.kubeconfig), namespace) as found:
        wiped = registered(found.url, namespace, ca_bundle=issue_authority(datetime.now(UTC)).certificate)
        for body in wiped:
            resource = MUTATING_WEBHOOKS if body["kind"] == MUTATING_WEBHOOKS.kind else VALIDATING_WEBHOOKS
            change = [{"op": "replace", "path": "/webhooks", "value": body["webhooks"]}]
            await client.patch(resource, body["metadata"]["name"], change, kind=JSON, as_type=Object)
        expected = (await credentials(client, namespace)).ca_bundle

        async def put_back() -> bool:
            return await bundle(client) == expected

        await eventually(put_back)
        await found.until_ready()
        await until_called(client, namespace)


@asynccontextmanager
async def two_replicas(
    client: Client, cluster: LocalCluster, namespace: str, wall_clock: datetime | None = None
) -> AsyncIterator[list[Replica]]:
    """Two that serve, the first of them called."""
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
    """All replicas refresh at once, while sets are made without a pause: a call that fails is raised."""
    rotation = asyncio.gather(*(each.admission.rotator.refresh() for each in replicas))
    done = 0
    while not rotation.done():
        await asyncio.gather(*(call(client, namespace) for _ in range(4)))
        done += 1
    await rotation
    await call(client, namespace)
    assert done > 1


@pytest.mark.parametrize("part", ["authority", "serving"])
async def test_no_request_is_refused_while_a_certificate_rotates(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, part: str
) -> None:
    """The replicas live in the past until the certificate is due, and then find it so at the same time."""
    now, both = datetime.now(UTC), part == "authority"
    aged = now - (AUTHORITY_LIFETIME if both else SERVING_LIFETIME) * 0.7
    old = issue_authority(aged if both else now)
    before = ServingCredentials(old, issue_serving(old, (*HOSTS, *names(namespace)), now if both else aged))
    await keep(client, namespace, before)
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


async def test_no_request_is_refused_when_the_secret_was_deleted(
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


def bring(folder: Path, pair: KeyPair) -> dict[str, Any]:
    """As a mounted Secret changes: both files are others at once."""
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        fresh = folder / f"{name}.new"
        fresh.write_bytes(content)
        fresh.rename(folder / name)
    return {"certProvisionMode": "manual", "serverCertDir": str(folder)}


async def test_a_brought_certificate_is_served_and_its_successor_too(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    authority = issue_authority(now)
    first, second = (issue_serving(authority, HOSTS, now) for _ in range(2))
    connection = config.load(cluster.kubeconfig)
    async with replica(connection, namespace, webhooks=bring(tmp_path, first)) as found:
        wanted = registered(found.url, namespace, ca_bundle=authority.certificate)
        async with registering(client, wanted):
            await found.until_ready()
            await until_called(client, namespace)
            assert found.admission.serving.current_pair == first
            bring(tmp_path, second)
            await found.until_ready()
            assert found.admission.serving.current_pair == second
            await call(client, namespace)
            assert await bundle(client) == authority.certificate


async def test_it_is_not_ready_with_a_certificate_that_nobody_trusts(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    trusted, other = issue_authority(now), issue_authority(now)
    good_pair, wrong = issue_serving(trusted, HOSTS, now), issue_serving(other, HOSTS, now)
    elsewhere = issue_serving(trusted, ("10.1.2.3",), now)
    connection = config.load(cluster.kubeconfig)
    async with replica(connection, namespace, webhooks=bring(tmp_path, wrong)) as found:
        wanted = registered(found.url, namespace, ca_bundle=trusted.certificate)
        async with registering(client, wanted):
            for pair in (wrong, elsewhere):
                bring(tmp_path, pair)
                (said,) = await settled_trouble(found)
                assert said.startswith("webhooks whose certificate the API server trusts as 127.0.0.1 (")
            bring(tmp_path, good_pair)
            await found.until_ready()
            (tmp_path / "tls.key").write_text("torn")
            await found.until_ready()
            assert found.admission.serving.current_pair == good_pair


async def settled_trouble(found: Replica) -> list[str]:
    """What is wrong once the configurations are known and the webhooks answer: before, that is what is waited
    for, and a busy machine may take its time for either."""

    async def known() -> list[str]:
        said = await found.admission.not_ready_reasons()
        waits = said and ("configurations" in said[0] or "answer within" in said[0])
        return [] if waits else said

    return await eventually(known)
