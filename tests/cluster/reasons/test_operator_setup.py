"""Codes for what the operator lacks: an init image, rights, NVIDIA's driver; and of a gang that is released
in part, which the configuration asks for."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CLUSTER_ROLES
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.local.cluster.lifecycle import LocalCluster
from grove.reasons.codes import ReasonCode as Code
from grove.schedulers.registry import backends
from tests.chart import (
    ACCESS_REVIEWS,
    ACCOUNT,
    NAMESPACE,
    PLACING,
    Account,
    operator_account_of,
    operator_rights,
)
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.workloads import Body, clique, workload
from tests.cluster.operator.support.world import World
from tests.cluster.reasons.causes import (
    FULL,
    NAME,
    SLOW_START,
    UNBOUND,
    Cause,
    CauseNode,
    constrained,
    pods,
    starting,
)
from tests.cluster.reasons.courses import PLAIN
from tests.cluster.reasons.explained import explained, wrongly_explained
from tests.cluster.reasons.seeded import Seeded
from tests.cluster.reasons.test_causes import SCHEDULERS, incomplete, topologies, wrong
from tests.cluster.webhooks.harness import eventually

VISIBLE = backends(
    Scheduler((SchedulerProfile("default-scheduler", {"placement": "All", "visibleAfter": "1s"}),))
)
AUTOSCALERS = "horizontalpodautoscalers"
CALLED = "limited"


def autoscaled() -> Body:
    """A set whose pods do not become ready, with an autoscaler that the operator may not create."""
    each = clique("a", annotations=SLOW_START)
    each["spec"]["autoScalingConfig"] = {"minReplicas": 1, "maxReplicas": 2}
    return workload(NAME, each)


OF_SETUP = (
    Cause("no-init-image", Code.INIT_IMAGE_MISSING, starting("a", "b", after="a"), PLAIN, gang=None),
    Cause("no-right", Code.OPERATOR_FORBIDDEN, autoscaled(), PLAIN, gang=None),
    Cause("no-nodes-listed", Code.NODES_NOT_LISTED, constrained("rack", pods()), (CauseNode(rack="r-l"),)),
    Cause(
        "no-driver", Code.COMPUTE_DOMAIN_CRD_MISSING, fabric.automatic(NAME, fabric.gpus("worker")), gang=None
    ),
)
# The volume keeps the scheduler from words that come first. It belongs to the pod: for others a gang waits.
UNBOUND_VOLUME = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": UNBOUND["spec"]}}}
IN_PART = Cause(
    "in-part",
    Code.RELEASED_IN_PART,
    pods(2, volumes=[UNBOUND_VOLUME]),
    (FULL, CauseNode()),
)


@pytest.fixture
async def limited_account(cluster: LocalCluster, crds: object) -> Account:
    """An account that may neither list nodes nor create autoscalers."""
    account = await operator_account_of(cluster, PLACING, CALLED)
    async with Client(config.load(cluster.kubeconfig)) as client:
        for right in operator_rights(PLACING):
            if right["kind"] == "ClusterRole":
                rules = [limited for rule in right["rules"] if (limited := _limited(rule)) is not None]
                name = f"{right['metadata']['name']}-{CALLED}"
                await client.patch(CLUSTER_ROLES, name, {"rules": rules}, as_type=Object)
        await eventually(lambda: _is_limited(client))
    return account


def _limited(rule: dict[str, Any]) -> dict[str, Any] | None:
    resources = [each for each in rule.get("resources", ()) if each != "nodes"]
    if not resources:
        return None
    verbs = [each for each in rule["verbs"] if AUTOSCALERS not in resources or each != "create"]
    return {**rule, "resources": resources, "verbs": verbs}


async def _is_limited(client: Client) -> bool:
    """Whether rights are withdrawn. API servers do not report when a change of RBAC takes effect: ask."""
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}-{CALLED}"
    for group, resource, verb in (("", "nodes", "list"), ("autoscaling", AUTOSCALERS, "create")):
        spec = {"user": user, "resourceAttributes": {"group": group, "resource": resource, "verb": verb}}
        body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
        if (await client.create(ACCESS_REVIEWS, body, as_type=dict))["status"]["allowed"]:
            return False
    return True


async def test_what_the_operator_lacks_is_the_first_code(client: Client, limited_account: Account) -> None:
    crds = {each.metadata.name for each in (await client.list(CRDS, as_type=Object)).items}
    assert fabric.CRD not in crds, "another test has left the driver's CRD"
    seeded = Seeded(client, OF_SETUP, "others-of-setup")
    world = World(client, limited_account.config, seeded.others)
    async with (
        seeded.watched(),
        topologies(client),
        operating(
            world,
            init_image="",
            backends=SCHEDULERS,
            topology_aware=True,
            fabrics=fabric.NVIDIA,
            synced=False,
        ),
    ):
        try:
            await seeded.create()
            await seeded.until(lambda: not wrong(seeded) and not incomplete(seeded))
            assert not wrong(seeded), "\n".join(wrong(seeded))
            assert incomplete(seeded) == []
            assert wrongly_explained(OF_SETUP, await explained(client, OF_SETUP)) == {}
        finally:
            await seeded.delete()


async def test_gang_released_in_part_says_so(client: Client, placing_account: Account) -> None:
    seeded = Seeded(client, (IN_PART,), "others-of-part")
    world = World(client, placing_account.config, seeded.others)
    async with seeded.watched(), operating(world, backends=VISIBLE):
        try:
            await seeded.create()
            await seeded.until(lambda: not wrong(seeded) and not incomplete(seeded))
            assert not wrong(seeded), "\n".join(wrong(seeded))
            assert incomplete(seeded) == []
        finally:
            await seeded.delete()
