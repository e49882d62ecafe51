"""The verbs of the client on a real API server: replies and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from grove.kube import errors
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.auth.secret_source import FileSource, InlineSource
from grove.kube.client.client import APPLY, JSON, Client, Object
from grove.kube.client.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from grove.kube.client.retry import NO_RETRY
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.kube.reflector_harness import ConfigMap, config_map, create_many
from tests.service_accounts import request_token

pytestmark = pytest.mark.cluster
SELF = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "none"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]} | spec,
    }


async def create(client: Client, namespace: str, name: str = "a", value: str = "1") -> ConfigMap:
    return await client.create(CONFIG_MAPS, config_map(name, value), namespace=namespace, as_type=ConfigMap)


async def test_create_get_patch_and_delete(client: Client, namespace: str) -> None:
    created = await create(client, namespace)
    assert created.metadata.uid
    assert await client.get(CONFIG_MAPS, "a", namespace=namespace, as_type=ConfigMap) == created
    merged = await client.patch(
        CONFIG_MAPS, "a", {"data": {"v": "2"}}, namespace=namespace, as_type=ConfigMap
    )
    assert merged.data == {"v": "2"}
    steps = [{"op": "test", "path": "/data/v", "value": "2"}, {"op": "add", "path": "/data/w", "value": "3"}]
    patched = await client.patch(CONFIG_MAPS, "a", steps, kind=JSON, namespace=namespace, as_type=ConfigMap)
    assert patched.data == {"v": "2", "w": "3"}
    assert await client.delete(CONFIG_MAPS, "a", namespace=namespace, as_type=ConfigMap) is None
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, "a", namespace=namespace, as_type=ConfigMap)


async def test_create_of_existing_name_is_already_exists(client: Client, namespace: str) -> None:
    await create(client, namespace)
    with pytest.raises(errors.AlreadyExists) as caught:
        await create(client, namespace)
    assert caught.value.status.details is not None
    assert caught.value.status.details.name == "a"


async def test_replace_is_a_compare_and_swap(client: Client, namespace: str) -> None:
    created = await create(client, namespace)
    body = config_map("a", "2") | {
        "metadata": {"name": "a", "resourceVersion": created.metadata.resource_version}
    }
    await client.replace(CONFIG_MAPS, "a", body, namespace=namespace, as_type=ConfigMap)
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIG_MAPS, "a", body, namespace=namespace, as_type=ConfigMap)


async def test_apply_conflicts_with_other_field_manager(client: Client, namespace: str) -> None:
    async def apply(value: str, manager: str, force: bool = False) -> ConfigMap:
        return await client.patch(
            CONFIG_MAPS,
            "a",
            config_map("a", value),
            kind=APPLY,
            field_manager=manager,
            force=force,
            namespace=namespace,
            as_type=ConfigMap,
        )

    await apply("1", "one")
    with pytest.raises(errors.Conflict, match='conflicts with "one"'):
        await apply("2", "two")
    assert (await apply("2", "two", force=True)).data == {"v": "2"}


async def test_delete_checks_its_precondition(client: Client, namespace: str) -> None:
    created = await create(client, namespace)
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid="other", as_type=Object)
    await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid=created.metadata.uid, as_type=Object)


async def test_delete_replies_are_as_the_cache_expects(client: Client, namespace: str) -> None:
    """The rules of `Cache.apply_delete_reply` rest on these answers."""
    await client.create(PODS, pod("waits", schedulerName="none"), namespace=namespace, as_type=Raw)
    body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}], "clusterIP": "None"}}
    await client.create(SERVICES, body, namespace=namespace, as_type=Raw)
    held = config_map("held") | {"metadata": {"name": "held", "finalizers": ["test/hold"]}}
    await client.create(CONFIG_MAPS, held, namespace=namespace, as_type=Raw)

    deleted_pod = await client.delete(PODS, "waits", namespace=namespace, as_type=Object)
    assert deleted_pod is not None
    assert deleted_pod.metadata.deletion_timestamp, (
        "the reply for a pod is terminating, even if it is gone at once"
    )
    service = await client.delete(SERVICES, "s", namespace=namespace, as_type=Object)
    assert service is not None
    assert service.metadata.deletion_timestamp is None, "a last state without deletionTimestamp: gone"
    waiting = await client.delete(CONFIG_MAPS, "held", namespace=namespace, as_type=Object)
    assert waiting is not None
    assert waiting.metadata.deletion_timestamp
    await client.patch(
        CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, namespace=namespace, as_type=Raw
    )


async def test_list_is_paged_and_selects_by_label(client: Client, namespace: str) -> None:
    await create_many(client, namespace, [f"a{number}" for number in range(25)])
    for name in ("b0", "b1"):
        await client.create(CONFIG_MAPS, config_map(name, pick="me"), namespace=namespace, as_type=Raw)
    listing = await client.list(CONFIG_MAPS, namespace=namespace, as_type=ConfigMap, page=7)
    names = [found.metadata.name for found in listing.items if found.metadata.name[0] in "ab"]
    assert len(names) == len(set(names)) == 27
    picked = await client.list(CONFIG_MAPS, namespace=namespace, labels={"pick": "me"}, as_type=Object)
    assert [found.metadata.name for found in picked.items] == ["b0", "b1"]


async def test_scale_and_status_are_subresources(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"] | {"schedulerName": "none"}}
    body = {
        "metadata": {"name": "d"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    await client.create(DEPLOYMENTS, body, namespace=namespace, as_type=Raw)
    scaled = await client.set_scale(DEPLOYMENTS, "d", 1, namespace=namespace)
    assert scaled.spec.replicas == 1
    condition = {"type": "Odd", "status": "True", "reason": "Test", "message": "m"}
    patch = {"status": {"conditions": [condition]}}
    written = await client.patch(
        DEPLOYMENTS, "d", patch, namespace=namespace, subresource="status", as_type=dict
    )
    assert "Odd" in [found["type"] for found in written["status"]["conditions"]]


async def test_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace, dry_run=True, as_type=Object)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "a", namespace=namespace, as_type=Object)


async def test_invalid_object_error_names_the_field(client: Client, namespace: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await client.create(CONFIG_MAPS, config_map("Not A Name"), namespace=namespace, as_type=Object)
    assert caught.value.status.details is not None
    assert caught.value.status.details.causes[0].field == "metadata.name"


async def test_raw_requests_are_answered(client: Client) -> None:
    assert (await client.raw("GET", "/readyz")).body == b"ok"
    assert b"definitions" in (await client.raw("GET", "/openapi/v2")).body


async def test_unknown_token_is_unauthorized_and_no_role_forbidden(
    cluster: LocalCluster, namespace: str
) -> None:
    admin = config.load(cluster.kubeconfig)
    unknown = msgspec.structs.replace(admin, credentials=StaticCredentials(token=InlineSource(b"unknown")))
    async with Client(unknown, retry=NO_RETRY) as client:
        with pytest.raises(errors.Unauthorized, match="renew the credentials"):
            await client.list(NODES, as_type=Object)
    powerless = msgspec.structs.replace(admin, headers=(("Impersonate-User", "powerless"),))
    async with Client(powerless, retry=NO_RETRY) as client:
        with pytest.raises(errors.Forbidden, match='User "powerless" cannot list resource "nodes"'):
            await client.list(NODES, as_type=Object)


async def whoami(client: Client) -> str:
    review = await client.create(SELF, {"apiVersion": SELF.api_version, "kind": SELF.kind}, as_type=dict)
    return str(review["status"]["userInfo"]["username"]).rpartition(":")[2]


async def token_for(client: Client, namespace: str, name: str) -> bytes:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await client.create(SERVICE_ACCOUNTS, body, namespace=namespace, as_type=Raw)
    return (await request_token(client, namespace, name)).encode()


async def test_rotated_token_is_used_without_restart(
    cluster: LocalCluster, client: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    admin = config.load(cluster.kubeconfig)

    def rotate(token: bytes) -> None:
        (tmp_path / "next").write_bytes(token)
        (tmp_path / "next").rename(file)

    def follower(source: FileSource) -> Config:
        return msgspec.structs.replace(admin, credentials=StaticCredentials(token=source))

    first, second = await token_for(client, namespace, "first"), await token_for(client, namespace, "second")
    rotate(first)
    source = FileSource(file, "token file")
    async with Client(follower(source)) as rotating:
        assert await whoami(rotating) == "first"
        rotate(second)
        source.invalidate()
        assert await whoami(rotating) == "second"

    rotate(b"no-longer-valid")
    async with Client(follower(FileSource(file, "token file"))) as refused:
        with pytest.raises(errors.Unauthorized):
            await whoami(refused)
        rotate(second)
        assert await whoami(refused) == "second", "after a 401 the file is read at once"
