"""What sets say about their domains, and how they are told to."""

from __future__ import annotations

from grove.kube.client.resource import EVENTS, Resource
from tests.cluster.operator.support.fabric import DOMAINS
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS


def domains(world: World) -> list[str]:
    return [domain.name for domain in world.all(DOMAINS) if not domain.terminating]


def events(world: World, name: str) -> list[tuple[str, str]]:
    """What was told so far; operators tell in the background, and nobody waits for them when they end."""
    return [
        (event.reason, event.note)
        for event in world.all(EVENTS)
        if event.regarding["name"] == name and event.reason.startswith(("ComputeDomain", "ImexChannel"))
    ]


def reasons(world: World, name: str) -> list[str]:
    return [reason for reason, _ in events(world, name)]


def ready(world: World, name: str) -> str:
    conditions = {fact["type"]: fact for fact in world.get(SETS, name).status.get("conditions", ())}
    return str(conditions.get("ComputeDomainsReady", {}).get("status", ""))


def reason(world: World, name: str) -> str:
    said = world.get(SETS, name).status.get("conditions", ())
    return next((str(fact["reason"]) for fact in said if fact["type"] == "ComputeDomainsReady"), "")


def message(world: World, kind: Resource, name: str, about: str) -> str:
    said = world.get(kind, name).status.get("conditions", ())
    return next((str(fact["message"]) for fact in said if fact["type"] == about), "")
