"""Which pods a restart replaces, and how it is shown."""

from __future__ import annotations

import pytest

from grove.api.types.podclique import PodClique
from grove.cli.views.actions.restart_view import RestartView, affected, restart_lines, unit_text
from grove.rules.restart_units import RestartUnit
from tests.plan.builders import read_set
from tests.plan.simulator.simulator import Simulator, read
from tests.plan.simulator.updates import deployed


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return deployed("a:2/1 b:1 c:1", "x:2/1=b,c", replicas=2)


@pytest.mark.parametrize(
    ("unit", "text", "cliques"),
    [
        (RestartUnit(0, "a"), "clique a in replica 0", ["0-a"]),
        (RestartUnit(None, "a"), "clique a in all replicas", ["0-a", "1-a"]),
        (RestartUnit(1), "replica 1", ["1-a", "1-x-0-b", "1-x-0-c", "1-x-1-b", "1-x-1-c"]),
        (RestartUnit(0, "x", 1), "replica 1 of group x in replica 0", ["0-x-1-b", "0-x-1-c"]),
        (RestartUnit(0, "x"), "group x in replica 0", ["0-x-0-b", "0-x-0-c", "0-x-1-b", "0-x-1-c"]),
        (RestartUnit(0, "b"), "clique b in replica 0", ["0-x-0-b", "0-x-0-c", "0-x-1-b", "0-x-1-c"]),
        (RestartUnit(0, "x", 2), "replica 2 of group x in replica 0", []),
    ],
    ids=str,
)
def test_cliques_that_a_restart_affects(sim, unit, text, cliques):
    workload = read_set(sim.api.get("PodCliqueSet", "wl"))
    found: list[PodClique] = [read("PodClique", each) for each in sim.api.all("PodClique").values()]
    names = sorted(each.metadata.name for each in affected(workload, unit, found))
    assert names == [f"wl-{each}" for each in cliques]
    assert unit_text(unit, ["x"]) == text


def test_restart_is_shown_with_the_command_that_follows_it():
    view = RestartView("team", "PodCliqueSet", "chat", "replica 1", ("chat-1-a",), 1, "2027")
    assert "\n".join(restart_lines(view)) == (
        "PodCliqueSet chat: replica 1, 1 pod of 1 clique: will be restarted, as by an update\n"
        "follow it with: grove rollout status chat -n team"
    )
