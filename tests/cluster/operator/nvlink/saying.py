"""What sets say about their domains, and how they are told to."""

from __future__ import annotations

from grove.kube.resource import EVENTS, Resource
from tests.cluster.operator.fabric import DOMAINS
from tests.cluster.operator.harness import World
from tests.cluster.operator.seen import SETS


def domains(world: World) -> list[str]:
    return [domain.name for domain in world.all(DOMAINS) if not domain.terminating]


async def events(world: World, name: str) -> list[tuple[str, str]]:
    listed = await world.client.list(EVENTS, as_type=dict, namespace=world.namespace)
    return [
        (event["reason"], event["note"])
        for event in listed.items
        if event["regarding"]["name"] == name and event["reason"].startswith(("ComputeDomain", "ImexChannel"))
    ]


def ready(world: World, name: str) -> str:
    conditions = {fact["type"]: fact for fact in world.get(SETS, name).status.get("conditions", ())}
    return str(conditions.get("ComputeDomainsReady", {}).get("status", ""))


def reason(world: World, name: str) -> str:
    said = world.get(SETS, name).status.get("conditions", ())
    return next((str(fact["reason"]) for fact in said if fact["type"] == "ComputeDomainsReady"), "")


def message(world: World, kind: Resource, name: str, about: str) -> str:
    said = world.get(kind, name).status.get("conditions", ())
    return next((str(fact["message"]) for fact in said if fact["type"] == about), "")
