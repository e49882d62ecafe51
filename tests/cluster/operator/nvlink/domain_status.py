"""What sets report about their domains: events and conditions."""

from __future__ import annotations

from grove.kube.client.resource import EVENTS, Resource
from tests.cluster.operator.support.fabric import DOMAINS
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import SETS


def domains(world: World) -> list[str]:
    return [domain.name for domain in world.all(DOMAINS) if not domain.terminating]


def events(world: World, name: str) -> list[tuple[str, str]]:
    """Reasons and notes of the events so far. Operators emit events in the background and do not wait for
    them when they stop."""
    return [
        (event.reason, event.note)
        for event in world.all(EVENTS)
        if event.regarding["name"] == name and event.reason.startswith(("ComputeDomain", "ImexChannel"))
    ]


def reasons(world: World, name: str) -> list[str]:
    return [reason for reason, _ in events(world, name)]


def ready(world: World, name: str) -> str:
    conditions = {each["type"]: each for each in world.get(SETS, name).status.get("conditions", ())}
    return str(conditions.get("ComputeDomainsReady", {}).get("status", ""))


def reason(world: World, name: str) -> str:
    conditions = world.get(SETS, name).status.get("conditions", ())
    return next((str(each["reason"]) for each in conditions if each["type"] == "ComputeDomainsReady"), "")


def message(world: World, kind: Resource, name: str, type_: str) -> str:
    conditions = world.get(kind, name).status.get("conditions", ())
    return next((str(each["message"]) for each in conditions if each["type"] == type_), "")
