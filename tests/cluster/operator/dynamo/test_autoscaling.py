"""A HorizontalPodAutoscaler scales a component through its adapter, by metrics that the test serves."""

from __future__ import annotations

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.dynamo.admission.defaults import default_graph
from grove.kube.client.resource import HORIZONTAL_POD_AUTOSCALERS as AUTOSCALERS
from grove.operator.caches.dynamo import ADAPTERS, GRAPHS
from grove.operator.dynamo_settings import DynamoSettings
from tests.cluster.operator.dynamo.graph_status import ready
from tests.cluster.operator.lifecycle.test_autoscaling import LONG, metric
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.metrics_api import Metrics
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment


async def test_component_follows_autoscaled_adapter(dynamo: World, metrics: Metrics) -> None:
    body = deployment(component("Web", "frontend"), component(scalingAdapter={}))
    body["metadata"] = {"name": "app"}
    target = {"apiVersion": ADAPTERS.api_version, "kind": ADAPTERS.kind, "name": "app-worker"}
    spec = {"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 4, "metrics": [metric("queue")]}

    async def until(count: int) -> None:
        def scaled() -> bool:
            wanted = dynamo.get(GRAPHS, "app").spec["components"][1]["replicas"]
            adapter = dynamo.get(ADAPTERS, "app-worker")
            pods = len(dynamo.pods(clique="app-0-worker"))
            counts = {wanted, pods, adapter.spec["replicas"], adapter.status.get("replicas")}
            return counts == {count} and ready(dynamo, "app")

        await dynamo.until(scaled, f"{count} workers", LONG)

    metrics["queue"] = 10
    async with operating(
        dynamo, dynamo=DynamoSettings.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
    ):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: dynamo.find(ADAPTERS, "app-worker"), "an adapter")
        await until(1)
        await dynamo.create(AUTOSCALERS, {"metadata": {"name": "mine"}, "spec": spec})
        metrics["queue"] = 30
        await until(3)
        metrics["queue"] = 20
        await until(2)
        metrics["queue"] = 0
        await until(0)
        metrics["queue"] = 10
        await until(1)
        assert len(dynamo.pods(clique="app-0-web")) == 1
