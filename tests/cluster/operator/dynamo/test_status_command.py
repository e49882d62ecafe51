"""`grove status` and `grove events` of a DynamoGraphDeployment that an operator reconciles."""

from __future__ import annotations

import asyncio
import json

from grove.dynamo.admission.defaults import default_graph
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import GRAPHS
from grove.operator.dynamo_settings import DynamoSettings
from tests.cluster.cli.commands import grove, steady
from tests.cluster.operator.dynamo.graph_status import ready
from tests.cluster.operator.dynamo.test_deployments import CONFIGURATION
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment

PAGE = """\
DynamoGraphDeployment NAMESPACE/demo: Healthy
1/1 replicas available, 1/1 gangs running, 1/1 pods ready
graph: demo is successful
components
  COMPONENT  KIND       READY  UPDATED
  Web        PodClique  1/1    1/1
roles
  ROLE  READY  UPDATED
  web   1/1    1/1
gangs
  GANG    PHASE    READY
  demo-0  Running  1/1
"""


async def test_graph_has_a_page_with_its_components(dynamo: World, cluster: LocalCluster) -> None:
    body = deployment(component("Web", "frontend"))
    body["metadata"] = {"name": "demo"}
    where = ("-n", dynamo.namespace, "--kubeconfig", str(cluster.kubeconfig))
    async with operating(dynamo, dynamo=DynamoSettings.of(CONFIGURATION)):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: ready(dynamo, "demo"))
        page, events = await asyncio.gather(
            grove("status", "demo", *where, "--lease", "no-such-lease"),
            grove("events", "demo", "-o", "json", *where),
        )
    lines = steady(page.out, dynamo.namespace).splitlines(keepends=True)
    assert "".join(line for line in lines if not line.startswith("operator: ")) == PAGE
    assert (page.code, page.err) == (0, "")
    found = {(each["about"]["kind"], each["reason"]) for each in json.loads(events.out)["items"]}
    assert ("Pod", "Scheduled") in found
