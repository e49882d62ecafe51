"""What must hold at every moment of a world's life, read off its history, and once it has settled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove.api import labels
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.expand import Shape, expand
from grove.plan.model import Plan
from tests.plan.api_server import Body, Deed, decode
from tests.plan.world import OPERATOR, World


def check_history(world: World, *, zombies: bool = False, blackouts: bool = False) -> None:
    """References before pods, always. `zombies`: two leaders wrote one after the other, so that a gang may
    have moved on between a leader's write of it and the deed. `blackouts`: pods came and went unseen, and
    then a name that is still referenced is one whose pod is yet to be made."""
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
    gangs = {
        body["metadata"]["name"]: {
            group["name"]: len(group["podReferences"]) for group in body["spec"]["podgroups"]
        }
        for body in world.api.objects("PodGang")
    }
    counts = {
        (kind, body["metadata"]["name"]): body["spec"].get("replicas")
        for kind in ("PodClique", "PodCliqueScalingGroup", "Service")
        for body in world.api.objects(kind)
    }
    return {"pods": sorted(map(_clique_of, alive(world))), "gangs": gangs, "counts": counts}


def alive(world: World) -> list[Pod]:
    return [pod for pod in world.pods().values() if state.alive(pod)]


def _clique_of(pod: Pod) -> str:
    return pod.metadata.labels[labels.CLIQUE]


def check_settled(world: World) -> None:
    """Every clique has the pods it asks for, each with its own index, and its gang names exactly these."""
    for body in world.api.objects("PodClique"):
        name = body["metadata"]["name"]
        pods = [pod for pod in alive(world) if _clique_of(pod) == name]
        assert len(pods) == body["spec"]["replicas"], name
        assert len({state.index_of(pod) for pod in pods}) == len(pods), f"{name}: an index comes twice"
        gang = world.references(body["metadata"]["labels"][labels.GANG])
        assert set(gang.get(name, [])) == {pod.metadata.name for pod in pods}, name


def expand_now(world: World) -> Shape:
    """What the replica should consist of."""
    counts = {body["metadata"]["name"]: body["spec"]["replicas"] for body in _scaled(world)}
    return expand(world.snapshot().workload, 0, counts, counts)


def _scaled(world: World) -> Iterator[Body]:
    yield from world.api.objects("PodCliqueScalingGroup")
    yield from world.api.objects("PodClique")


def check_floor(world: World, plan: Plan) -> None:
    """A plan deletes living pods only where there are more than were asked for."""
    doomed = {intent.target.name for intent in plan.intents if intent.id.startswith("delete Pod ")}
    wanted = {clique.name for clique in expand_now(world).cliques}
    for body in world.api.objects("PodClique"):
        if body["metadata"]["name"] not in wanted:
            continue
        pods = [pod for pod in alive(world) if _clique_of(pod) == body["metadata"]["name"]]
        leaving = sum(pod.metadata.name in doomed for pod in pods)
        assert leaving <= max(0, len(pods) - body["spec"]["replicas"]), body["metadata"]["name"]
