"""The status of a DynamoGraphDeployment: state, conditions, readiness."""

from __future__ import annotations

from typing import Any

from grove.operator.caches.dynamo import GRAPHS
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.world import World


def state(world: World, name: str) -> str:
    found = world.find(GRAPHS, name)
    return found.status.get("state", "") if found else ""


def condition(graph: AnyObject, type_: str) -> dict[str, Any]:
    return next((each for each in graph.status.get("conditions", ()) if each["type"] == type_), {})


def ready(world: World, name: str) -> bool:
    found = world.find(GRAPHS, name)
    if found is None or found.status.get("observedGeneration") != found.metadata.generation:
        return False
    return state(world, name) == "successful" and found.condition("Ready") == "True"
