"""The stand-in for kubelets on the local cluster: which init containers run, and their reported status."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.naming import labels, well_known
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.initc.initc_process import bodies
from tests.cluster.operator.support.objects import AnyObject, is_ready
from tests.cluster.operator.support.processes import seen

pytestmark = pytest.mark.cluster


def a_pod(name: str, *arguments: str) -> dict[str, Any]:
    """A pod as the operator creates it for a clique that waits for another one."""
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.GANG: "wl-0", labels.CLIQUE: "wl-0-b"}
    ours = {"name": well_known.INIT_CONTAINER, "image": "i", "args": list(arguments)}
    spec = {
        "containers": [{"name": "main", "image": "i"}],
        "initContainers": [{"name": "mine", "image": "i"}, ours],
        "volumes": [{"name": well_known.TOKEN_VOLUME, "secret": {"secretName": "wl-ic-sat"}}],
    }
    return {"metadata": {"name": name, "labels": carried}, "spec": spec}


def first() -> dict[str, Any]:
    """The pod that the other one waits for; KWOK makes it ready at once."""
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.GANG: "wl-0", labels.CLIQUE: "wl-0-a"}
    containers = [{"name": "main", "image": "i"}]
    return {"metadata": {"name": "first", "labels": carried}, "spec": {"containers": containers}}


def state_of(pod: AnyObject | None) -> dict[str, Any]:
    """The status of Grove's init container."""
    statuses = (pod.status.get("initContainerStatuses") or ()) if pod else ()
    return next((one for one in statuses if one["name"] == well_known.INIT_CONTAINER), {})


def is_running(pod: AnyObject | None) -> bool:
    return "running" in state_of(pod).get("state", {})


@pytest.fixture
async def pods(client: Client, namespace: str) -> Cache[AnyObject]:
    return Cache(PODS, AnyObject, namespace=namespace)


async def create_pods(client: Client, namespace: str, *made: dict[str, Any]) -> None:
    for body in made:
        await client.create(PODS, body, namespace=namespace, as_type=Object)


async def grant(client: Client, namespace: str) -> None:
    made = bodies(namespace)
    for resource in (SERVICE_ACCOUNTS, ROLES, SECRETS, ROLE_BINDINGS):
        await client.create(resource, made[resource.kind], namespace=namespace, as_type=Object)


async def test_pod_waits_for_secret_then_for_other_clique(
    cluster: LocalCluster, client: Client, namespace: str, pods: Cache[AnyObject]
) -> None:
    await create_pods(client, namespace, a_pod("second", "--podcliques=wl-0-a:1"))
    await grant(client, namespace)
    await seen(client, pods, lambda found: is_running(found.get(namespace, "second")))
    waiting = pods.get(namespace, "second")
    assert waiting is not None
    assert (waiting.status["phase"], waiting.condition("Initialized")) == ("Pending", "False")
    mine = waiting.status["initContainerStatuses"][0]
    assert (mine["name"], mine["state"]["terminated"]["exitCode"]) == ("mine", 0)
    await create_pods(client, namespace, first())
    pods = Cache(PODS, AnyObject, namespace=namespace)
    await seen(client, pods, lambda found: (pod := found.get(namespace, "second")) and is_ready(pod))
    assert state_of(pods.get(namespace, "second"))["state"]["terminated"]["exitCode"] == 0


async def test_invalid_arguments_are_reported_in_status(
    cluster: LocalCluster, client: Client, namespace: str, pods: Cache[AnyObject]
) -> None:
    await create_pods(client, namespace, a_pod("second", "--podcliques=wl-0-a:none"))
    await seen(client, pods, lambda found: state_of(found.get(namespace, "second")).get("lastState"))
    status = state_of(pods.get(namespace, "second"))
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert "the count must be a whole number above 0" in status["state"]["waiting"]["message"]


async def test_deleted_pod_stops_its_init_container(
    cluster: LocalCluster, client: Client, namespace: str, pods: Cache[AnyObject]
) -> None:
    await grant(client, namespace)
    await create_pods(client, namespace, a_pod("second", "--podcliques=wl-0-a:1"))
    await seen(client, pods, lambda found: state_of(found.get(namespace, "second")))
    await client.delete(PODS, "second", namespace=namespace, as_type=Object)
    await seen(client, Cache(PODS, AnyObject, namespace=namespace), lambda found: not len(found))
    await create_pods(client, namespace, first(), a_pod("second", "--podcliques=wl-0-a:1"))
    pods = Cache(PODS, AnyObject, namespace=namespace)
    await seen(client, pods, lambda found: (pod := found.get(namespace, "second")) and is_ready(pod))
