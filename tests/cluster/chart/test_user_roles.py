"""Kubernetes' own roles `view` and `edit`, with the rights that the chart adds to them."""

from __future__ import annotations

import pytest

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import ROLE_BINDINGS
from tests.chart import aggregated_to, apply, may, render
from tests.cluster.webhooks.harness import eventually

pytestmark = pytest.mark.cluster

SETS, GRAPHS = "grove.io/podcliquesets", "nvidia.com/dynamographdeployments"
READ = [
    *(f"grove.io/{name}" for name in ("podcliquesets", "podcliques", "podcliquescalinggroups")),
    *(f"grove.io/{name}/status" for name in ("podcliquesets", "podcliques", "podcliquescalinggroups")),
    *("scheduler.grove.io/podgangs", "scheduler.grove.io/podgangs/status", GRAPHS),
]
SCALED = [
    *(f"grove.io/{name}/scale" for name in ("podcliquesets", "podcliques", "podcliquescalinggroups")),
    "nvidia.com/dynamographdeploymentscalingadapters/scale",
]
OF_THE_OPERATOR = [
    *("grove.io/podcliques", "grove.io/podcliquescalinggroups", "scheduler.grove.io/podgangs"),
    *("grove.io/podcliquesets/status", "scheduler.grove.io/podgangs/status", f"{GRAPHS}/status"),
    *("grove.io/clustertopologies", "grove.io/clustertopologybindings", "grove.io/clustertopologies/status"),
]
WRITES = ("create", "update", "patch", "delete", "deletecollection")


async def test_edit_writes_workloads_and_view_reads_them(client: Client, namespace: str) -> None:
    for role in ("view", "edit"):
        binding = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": role, "apiGroup": "rbac.authorization.k8s.io"}],
        }
        await client.create(ROLE_BINDINGS, binding, namespace=namespace, as_type=Object)
    for each in render({"config.dynamo.enabled": True}):
        if aggregated_to(each):
            await apply(client, each)

    async def allowed(user: str, verb: str, what: str) -> bool:
        group, _, resource = what.partition("/")
        return await may(client, user, verb, group, resource, namespace)

    # The controller of aggregated roles does not report when it is done: ask for one right of each role.
    await eventually(lambda: allowed("edit", "update", SCALED[-1]))
    await eventually(lambda: allowed("view", "watch", GRAPHS))
    read = [(user, verb, what) for user in ("view", "edit") for verb in ("get", "watch") for what in READ]
    written = [("edit", verb, what) for verb in WRITES for what in (SETS, GRAPHS)]
    scaled = [("edit", verb, what) for verb in ("get", "update", "patch") for what in SCALED]
    assert [each for each in (*read, *written, *scaled) if not await allowed(*each)] == []
    by_viewer = [("view", verb, what) for verb in WRITES for what in (SETS, GRAPHS, *SCALED)]
    by_editor = [("edit", verb, what) for verb in WRITES for what in OF_THE_OPERATOR]
    assert [each for each in (*by_viewer, *by_editor) if await allowed(*each)] == []
