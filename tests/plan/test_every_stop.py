"""An operator that ends after its n-th write, for every n: the next one ends the same by the same deeds.

What is sampled on a real server is complete here: each story is told once without a stop, and then once for
every write that it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from grove.api import labels
from tests.plan import hands
from tests.plan.api_server import decode
from tests.plan.builders import a_set
from tests.plan.invariants import check_history, check_settled, outline
from tests.plan.meddling import SHARED, share_claims
from tests.plan.world import OPERATOR, Run, World

Act = Callable[[World], object]


def scaled(kind: str, name: str, replicas: int) -> Act:
    return lambda world: world.scale(kind, name, replicas)


def edited(kind: str, name: str, body: dict) -> Act:
    return lambda world: world.api.patch(kind, name, body)


def lost(kind: str, name: str) -> Act:
    return lambda world: world.api.delete(kind, name)


def to_a_pod(deed: Callable[[World, str], object], clique: str) -> Act:
    return lambda world: deed(world, min(world.pods(clique)))


def nothing(world: World) -> None: ...


STORIES: dict[str, tuple[Act, ...]] = {
    "a group": (
        scaled("PodCliqueScalingGroup", "wl-0-x", 3),
        scaled("PodCliqueScalingGroup", "wl-0-x", 1),
        scaled("PodCliqueScalingGroup", "wl-0-x", 0),
        scaled("PodCliqueScalingGroup", "wl-0-x", 2),
    ),
    "a clique": (
        scaled("PodClique", "wl-0-a", 4),
        scaled("PodClique", "wl-0-a", 1),
        scaled("PodClique", "wl-0-a", 0),
        scaled("PodClique", "wl-0-a", 2),
    ),
    "a set": (scaled("PodCliqueSet", "wl", 0), scaled("PodCliqueSet", "wl", 1)),
    "pods": (
        to_a_pod(hands.delete, "wl-0-a"),
        to_a_pod(hands.fail, "wl-0-x-0-b"),
        to_a_pod(hands.force_delete, "wl-0-x-1-b"),
    ),
    "parts": (
        lost("PodGang", "wl-0"),
        lost("Service", "wl-0"),
        edited("PodClique", "wl-0-a", {"spec": {"roleName": "other"}, "metadata": {"labels": {"x": "y"}}}),
        edited("PodGang", "wl-0-x-0", {"spec": {"podgroups": []}}),
        lost("PodClique", "wl-0-x-1-b"),
        lost("PodCliqueScalingGroup", "wl-0-x"),
    ),
    "claims": (
        lost("ResourceClaim", "wl-0-a-1-clique-per"),
        lost("ResourceClaim", "wl-0-x-all-group-all"),
        edited("ResourceClaim", "wl-0-set-per", {"metadata": {"ownerReferences": None}}),
        lost("ResourceClaim", "wl-0-x-1-b-all-clique-all"),
    ),
}


CLAIMS_OF: dict[str, set[tuple[str, str]]] = {"pods": set(), "parts": {("clique", "PerReplica")}}
"""Where fewer claims are shared than there could be, for each write is a stop, and each stop a story."""


class Teller:
    """Tells a story; the operator ends once, after so many writes."""

    def __init__(self, story: str, stop_after: int | None = None) -> None:
        body = a_set("a:2/1 b:1", "x:2/1=b")
        share_claims(body, CLAIMS_OF.get(story, {*SHARED}))
        self.world = World(body)
        self.writes = 0
        self._stop_after = stop_after
        self._acts = STORIES[story]

    def tell(self) -> None:
        for act in (nothing, *self._acts):
            act(self.world)
            for _ in range(3):
                self._operate()
                hands.run_all(self.world)
                hands.collect_garbage(self.world)
                hands.finish_terminating(self.world)
            self._operate()

    def _operate(self) -> None:
        """Pass after pass until there is nothing to do, or nothing more to be done before others act."""
        for _ in range(8):
            self.world.share()
            plan = self.world.plan()
            run = Run(self.world, plan)
            while run.go_on():
                self.writes += 1
                if self.writes == self._stop_after:
                    self.world.restart_operator()
                    break
            else:
                if not self.world.publish(plan, run.succeeded) and not plan.intents:
                    return


def deeds(world: World, verb: str) -> Counter[str]:
    """What the operator made or deleted; pods by their clique, for their names are chance."""
    found: Counter[str] = Counter()
    for deed in world.api.history:
        if deed.by == OPERATOR and deed.verb == verb:
            kind, name = deed.key
            body = decode(deed.after or deed.before or b"")
            found[f"{kind} {body['metadata']['labels'][labels.CLIQUE] if kind == 'Pod' else name}"] += 1
    return found


@pytest.mark.parametrize("story", STORIES)
def test_whenever_an_operator_stops_the_next_one_ends_the_same_by_the_same_deeds(story: str) -> None:
    measure = Teller(story)
    measure.tell()
    check_settled(measure.world)
    for stop_after in range(1, measure.writes + 1):
        teller = Teller(story, stop_after)
        teller.tell()
        told = f"stopped after write {stop_after} of {measure.writes}"
        assert outline(teller.world) == outline(measure.world), told
        assert deeds(teller.world, "create") == deeds(measure.world, "create"), told
        assert deeds(teller.world, "delete") <= deeds(measure.world, "delete"), told
        check_settled(teller.world)
        check_history(teller.world, lagging=True)  # whoever comes anew has not seen who went
