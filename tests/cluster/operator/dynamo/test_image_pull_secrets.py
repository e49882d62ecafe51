"""Image pull Secrets, selected by an operator that the chart permits to read Secrets."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.api.pull_secret import TYPE
from grove.kube.client.client import JSON
from grove.kube.client.resource import SECRETS
from grove.operator.caches.dynamo import GRAPHS
from grove.operator.dynamo_settings import DynamoSettings
from tests.cluster.operator.support.harness import PATIENCE, Operator, operating
from tests.cluster.operator.support.objects import SETS, AnyObject
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment

IMAGE = "registry.example.com/dynamo:1.4.1"
UNSCHEDULABLE = {"no-node": "has-this"}


def secret(name: str, registry: str = "registry.example.com") -> dict[str, Any]:
    config = msgspec.json.encode({"auths": {registry: {"auth": base64.b64encode(b"me:hush").decode()}}})
    data = {".dockerconfigjson": base64.b64encode(config).decode()}
    return {"metadata": {"name": name}, "type": TYPE, "data": data}


def pull_secrets(found: dict[str, Any]) -> list[str]:
    return [each["name"] for each in found.get("imagePullSecrets", ())]


def clique_secrets(dynamo: World) -> dict[str, list[str]]:
    """The image pull Secrets of each clique of the set."""
    found = dynamo.find(SETS, "app")
    cliques = found.spec["template"]["cliques"] if found else ()
    return {each["name"]: pull_secrets(each["spec"]["podSpec"]) for each in cliques}


async def until_secrets_synced(operator: Operator) -> None:
    """The operator itself waits for its cache of Secrets only for a short time."""
    known = operator.manager.graphs
    assert known is not None
    assert known.secrets is not None
    async with asyncio.timeout(PATIENCE):
        await known.secrets.synced.wait()


def web_is_ready(dynamo: World) -> bool:
    """Whether the status of the graph says so: then the operator knows that the pod has started."""
    web = dynamo.get(GRAPHS, "app").status.get("components", {}).get("Web", {})
    return web.get("readyReplicas") == 1


def pods(dynamo: World, part: str) -> list[AnyObject]:
    return dynamo.pods(clique=f"app-0-{part}")


async def test_new_secret_reaches_pending_and_not_running_pods(dynamo: World) -> None:
    """An unschedulable pod has not started, like one whose image cannot be pulled."""
    worker = component(main={"image": IMAGE})
    worker["podTemplate"]["spec"]["nodeSelector"] = UNSCHEDULABLE
    body = deployment(component("Web", "frontend", main={"image": IMAGE}), worker)
    body["metadata"] = {"name": "app"}
    await dynamo.create(SECRETS, secret("early"))
    await dynamo.create(SECRETS, secret("other", "other.example.com"))
    layer = DynamoSettings.of(
        OperatorConfiguration(dynamo=Dynamo(enabled=True, image_pull_secret_discovery=True))
    )
    async with operating(dynamo, dynamo=layer) as operator:
        await until_secrets_synced(operator)
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: pods(dynamo, "worker") and web_is_ready(dynamo), "a web pod that runs")
        assert clique_secrets(dynamo) == {"web": ["early"], "worker": ["early"]}
        (web,) = pods(dynamo, "web")
        assert pull_secrets(web.spec) == ["early"]

        await dynamo.create(SECRETS, secret("late"))
        await dynamo.until(
            lambda: [pull_secrets(pod.spec) for pod in pods(dynamo, "worker")] == [["early", "late"]],
            "a worker with the new Secret",
        )
        assert clique_secrets(dynamo) == {"web": ["early"], "worker": ["early", "late"]}
        assert [pod.uid for pod in pods(dynamo, "web")] == [web.uid]

        changed = {"labels": {"changed": "anyway"}}
        path = "/spec/components/0/podTemplate/metadata"
        more = [{"op": "add", "path": path, "value": changed}]
        await dynamo.patch(GRAPHS, "app", more, kind=JSON)
        await dynamo.until(
            lambda: clique_secrets(dynamo)["web"] == ["early", "late"], "it in a changed clique"
        )
