"""What must hold at every moment of a world's life, read off its history; and what two worlds have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api import labels
from tests.plan.api_server import Body, Deed, decode
from tests.plan.world import OPERATOR, World


def check_history(world: World, *, zombies: bool = False, blackouts: bool = False) -> None:
    """References before pods, always. `zombies`: two leaders wrote one after the other, so that a gang may
    have moved on between a leader's write of it and the deed. `blackouts`: pods came to an end unseen."""
    referenced: dict[str, set[str]] = {}
    ever: set[str] = set()
    made: set[str] = set()
    for deed in world.api.history:
        if deed.key[0] == "PodGang":
            referenced[deed.key[1]] = set(_names_in(deed.after))
            ever |= referenced[deed.key[1]]
        elif deed.key[0] == "Pod" and deed.verb == "create":
            _check_birth(deed, ever if zombies else referenced.get(_gang_of(deed), set()))
            assert blackouts or zombies or deed.key[1] not in made, f"{deed}: a name comes twice"
            made.add(deed.key[1])
        elif deed.key[0] == "Pod" and deed.verb == "delete" and deed.by == OPERATOR and not zombies:
            assert deed.key[1] not in referenced.get(_gang_of(deed), set()), f"{deed}: still a member"


def _check_birth(deed: Deed, referenced: set[str]) -> None:
    assert deed.by != OPERATOR or deed.key[1] in referenced, f"{deed}: its gang does not name it"


def _gang_of(deed: Deed) -> str:
    body: Body = decode(deed.before or deed.after or b"{}")
    return str(body["metadata"]["labels"].get(labels.GANG))


def _names_in(gang: bytes | None) -> Iterator[str]:
    for group in decode(gang)["spec"]["podgroups"] if gang else ():
        for reference in group["podReferences"]:
            yield reference["name"]


def outline(world: World) -> dict[str, Any]:
    """What a world looks like, whatever the names and UIDs that chance gave it."""
    pods = sorted(
        (pod.metadata.labels[labels.CLIQUE], int(pod.metadata.labels[labels.POD_INDEX]))
        for pod in world.pods().values()
        if pod.metadata.deletion_timestamp is None
    )
    gangs = {
        body["metadata"]["name"]: {
            group["name"]: len(group["podReferences"]) for group in body["spec"]["podgroups"]
        }
        for body in world.api.objects("PodGang")
    }
    kinds = ("PodClique", "PodCliqueScalingGroup", "Service")
    counts = {
        (kind, body["metadata"]["name"]): body["spec"].get("replicas")
        for kind in kinds
        for body in world.api.objects(kind)
    }
    return {"pods": pods, "gangs": gangs, "counts": counts}
