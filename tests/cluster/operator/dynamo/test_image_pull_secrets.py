"""Secrets for pulling images, found by an operator that the chart lets read them."""

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
NOWHERE = {"nobody": "has-this"}


def secret(name: str, registry: str = "registry.example.com") -> dict[str, Any]:
    config = msgspec.json.encode({"auths": {registry: {"auth": base64.b64encode(b"me:hush").decode()}}})
    data = {".dockerconfigjson": base64.b64encode(config).decode()}
    return {"metadata": {"name": name}, "type": TYPE, "data": data}


def named(found: dict[str, Any]) -> list[str]:
    return [each["name"] for each in found.get("imagePullSecrets", ())]


def given(dynamo: World) -> dict[str, list[str]]:
    """What the cliques of the set are to be pulled with."""
    found = dynamo.find(SETS, "app")
    cliques = found.spec["template"]["cliques"] if found else ()
    return {each["name"]: named(each["spec"]["podSpec"]) for each in cliques}


async def known_secrets(operator: Operator) -> None:
    """The operator waits for them too, but not for long."""
    known = operator.manager.graphs
    assert known is not None
    assert known.secrets is not None
    async with asyncio.timeout(PATIENCE):
        await known.secrets.synced.wait()


def web_is_ready(dynamo: World) -> bool:
    """As the operator tells it: then it knows that the pod has started."""
    told = dynamo.get(GRAPHS, "app").status.get("components", {}).get("Web", {})
    return told.get("readyReplicas") == 1


def pods(dynamo: World, part: str) -> list[AnyObject]:
    return dynamo.pods(clique=f"app-0-{part}")


async def test_a_secret_is_for_those_who_wait_and_replaces_nobody_who_runs(dynamo: World) -> None:
    """A pod that finds no node has not started, like one whose image cannot be pulled."""
    worker = component(main={"image": IMAGE})
    worker["podTemplate"]["spec"]["nodeSelector"] = NOWHERE
    body = deployment(component("Web", "frontend", main={"image": IMAGE}), worker)
    body["metadata"] = {"name": "app"}
    await dynamo.create(SECRETS, secret("early"))
    await dynamo.create(SECRETS, secret("other", "other.example.com"))
    layer = DynamoSettings.of(OperatorConfiguration(dynamo=Dynamo(enabled=True)))
    async with operating(dynamo, dynamo=layer) as operator:
        await known_secrets(operator)
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: pods(dynamo, "worker") and web_is_ready(dynamo), "a web pod that runs")
        assert given(dynamo) == {"web": ["early"], "worker": ["early"]}
        (web,) = pods(dynamo, "web")
        assert named(web.spec) == ["early"]

        await dynamo.create(SECRETS, secret("late"))
        await dynamo.until(
            lambda: [named(pod.spec) for pod in pods(dynamo, "worker")] == [["early", "late"]],
            "a worker with the new Secret",
        )
        assert given(dynamo) == {"web": ["early"], "worker": ["early", "late"]}
        assert [pod.uid for pod in pods(dynamo, "web")] == [web.uid]

        changed = {"labels": {"changed": "anyway"}}
        path = "/spec/components/0/podTemplate/metadata"
        more = [{"op": "add", "path": path, "value": changed}]
        await dynamo.patch(GRAPHS, "app", more, kind=JSON)
        await dynamo.until(lambda: given(dynamo)["web"] == ["early", "late"], "one that changes is given it")
