"""The layout of trees at different widths."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from grove.cli.views.line_width import shorten
from grove.cli.views.text_layout import Row, lines, tree
from grove.views.set_view import CliqueView, PodView, ReplicaView, SetView
from tests.plan.simulator import actors
from tests.views.builders import a_simulator, set_status, view


def printed(seen: SetView, width: int | None = None, **options: bool) -> list[str]:
    """The lines, with the random part of names replaced."""
    text = "\n".join(line.text for line in lines(tree(seen, **options), width))
    return re.sub(r"-[bcdfghjklmnpqrstvwxz2456789]{8}\b", "-xxxxxxxx", text).splitlines()


def test_tree_at_unlimited_width():
    assert printed(view(a_simulator())) == [
        "demo  1/1 available",
        "└─ replica 0  Running, gang demo-0",
        "   ├─ demo-0-router  3/3 ready, 2 needed",
        "   │  ├─ demo-0-router-xxxxxxxx  ready, on node",
        "   │  ├─ demo-0-router-xxxxxxxx  ready, on node",
        "   │  └─ demo-0-router-xxxxxxxx  ready, on node",
        "   └─ demo-0-model  2/2 available, 1 needed",
        "      ├─ replica 0  Running, gang demo-0",
        "      │  └─ demo-0-model-0-leader  1/1 ready",
        "      │     └─ demo-0-model-0-leader-xxxxxxxx  ready, on node",
        "      └─ replica 1  Running, gang demo-0-model-0",
        "         └─ demo-0-model-1-leader  1/1 ready",
        "            └─ demo-0-model-1-leader-xxxxxxxx  ready, on node",
    ]


def test_tree_at_40_columns():
    assert printed(view(a_simulator()), 40) == [
        "demo  1/1 available",
        "└─ replica 0  Running, gang demo-0",
        "   ├─ demo-0-router  3/3 ready, 2 needed",
        "   │  ├─ …-xxxxxxxx  ready, on node",
        "   │  ├─ …-xxxxxxxx  ready, on node",
        "   │  └─ …-xxxxxxxx  ready, on node",
        "   └─ …-model  2/2 available, 1 needed",
        "      ├─ replica 0  Running, gang demo-0",
        "      │  └─ …-leader  1/1 ready",
        "      │     └─ …-xxxxxxxx  ready",
        "      └─ replica 1  Running",
        "         └─ …-leader  1/1 ready",
        "            └─ …-xxxxxxxx  ready",
    ]


def test_tree_without_pods_while_starting():
    assert printed(view(a_simulator(running=False)), pods=False) == [
        "demo  0/1 available",
        "└─ replica 0  Pending, gang demo-0",
        "   ├─ demo-0-router  0/3 ready, 2 needed",
        "   └─ demo-0-model  0/2 available, 1 needed",
        "      ├─ replica 0  Pending, gang demo-0",
        "      │  └─ demo-0-model-0-leader  0/1 ready",
        "      └─ replica 1  Pending, gang demo-0-model-0",
        "         └─ demo-0-model-1-leader  0/1 ready",
    ]


def test_fabric_domains_are_below_their_replica():
    sim = a_simulator()
    domain = {"name": "team", "phase": "Ready", "replicaIndices": [0], "readyNodes": 2, "totalNodes": 2}
    others = [
        {"name": "demo-0", "phase": "Degraded", "replicaIndices": [0], "readyNodes": 1, "totalNodes": 2},
        {"name": "demo-1", "phase": "Missing", "replicaIndices": [1]},
    ]
    set_status(
        sim, {"computeDomains": [{**domain, "cliqueIDs": ["a.1", "b.1"], "reason": "FabricSplit"}, *others]}
    )
    seen = view(sim)
    assert printed(seen, pods=False)[1:4] == [
        "└─ replica 0  Running, gang demo-0",
        "   ├─ team  fabric domain Ready (FabricSplit), 2/2 nodes ready, partitions a.1, b.1",
        "   ├─ demo-0  fabric domain Degraded, 1/2 nodes ready",
    ]
    styles = {line.name: line.style for line in lines(tree(seen))}
    assert (styles["team"], styles["demo-0"]) == ("red", "red")
    assert "demo-1" not in styles, "it is of another replica"
    (replica,) = msgspec.to_builtins(seen)["members"]
    assert replica["fabricDomains"][0] == {
        "name": "team",
        "phase": "Ready",
        "ready": 2,
        "nodes": 2,
        "partitions": ("a.1", "b.1"),
        "reason": "FabricSplit",
    }


def placed(view_: SetView) -> SetView:
    """The view with a waiting base gang, and a placed scaled gang."""
    (replica,) = view_.members
    base, scaled = replica.gangs
    base = replace(base, why="no place\nnow", domains={"demo-0": "block b0", "demo-0-model-0": "rack r1"})
    scaled = replace(scaled, domains={scaled.name: "rack r2"})
    return replace(view_, members=(replace(replica, gangs=(base, scaled)),))


def test_tree_shows_domains_and_why_a_gang_waits():
    assert printed(placed(view(a_simulator())), pods=False) == [
        "demo  1/1 available",
        "└─ replica 0  Running, gang demo-0, block b0",
        "   ├─ waiting  no place now",
        "   ├─ demo-0-router  3/3 ready, 2 needed",
        "   └─ demo-0-model  2/2 available, 1 needed",
        "      ├─ replica 0  Running, gang demo-0, rack r1",
        "      │  └─ demo-0-model-0-leader  1/1 ready",
        "      └─ replica 1  Running, gang demo-0-model-0, rack r2",
        "         └─ demo-0-model-1-leader  1/1 ready",
    ]


def test_scaled_gang_that_waits_has_its_reason():
    seen = view(a_simulator())
    (replica,) = seen.members
    base, scaled = replica.gangs
    waits = replace(replica, gangs=(base, replace(scaled, why="no place now")))
    assert "         ├─ waiting  no place now" in printed(replace(seen, members=(waits,)))


def test_errors_are_last_and_one_line_each():
    sim = a_simulator()
    error = {"code": "E", "description": "no quota:\n  8 GPUs", "observedAt": "2026-01-01T00:00:00Z"}
    set_status(sim, {"availableReplicas": 1, "lastErrors": [error]})
    assert printed(view(sim))[-1] == "└─ error  no quota: 8 GPUs"


def of_one_pod(pod: PodView, width: int | None = None) -> str:
    clique = CliqueView("demo-0-router", 0, 1, 1, "demo-0", (pod,))
    seen = SetView("ns", "demo", 0, 1, members=(ReplicaView(0, cliques=(clique,)),))
    *_, last = printed(seen, width)
    return last


def test_pod_line_has_reason_after_node():
    pod = PodView("demo-0-router-xxxxxxxx", "starting", "node", "m: ImagePullBackOff")
    assert of_one_pod(pod).endswith("demo-0-router-xxxxxxxx  starting, on node, m: ImagePullBackOff")
    assert of_one_pod(pod, 50).endswith("…-xxxxxxxx  starting, on node")


def test_long_reason_is_cut_at_the_end():
    why = "0/16 nodes are available: 16 Insufficient nvidia.com/gpu."
    pod = PodView("demo-0-router-xxxxxxxx", "unscheduled", why=why)
    assert of_one_pod(pod).endswith(f"demo-0-router-xxxxxxxx  unscheduled: {why}")
    assert of_one_pod(pod, 60) == "      └─ …-xxxxxxxx  unscheduled: 0/16 nodes are available:…"


def test_line_colours():
    sim = a_simulator()
    actors.fail(sim, next(iter(sim.pods("demo-0-router"))))
    found = {line.name: line.style for line in lines(tree(view(sim)))}
    assert found["demo-0-router"] == "yellow"
    assert found["demo-0-model-0-leader"] == "green"
    assert sorted(style for name, style in found.items() if name.startswith("demo-0-router-")) == [
        "green",
        "green",
        "red",
    ]


names = st.text(st.sampled_from("ab-字 "), min_size=1, max_size=30)
rows = st.recursive(
    st.builds(Row, names, st.lists(names, max_size=3).map(tuple)),
    lambda inner: st.builds(
        Row, names, st.lists(names, max_size=3).map(tuple), children=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)


@given(rows, st.integers(20, 120))
def test_lines_fit_width_and_none_is_lost(row, width):
    def size(one: Row) -> int:
        return 1 + sum(map(size, one.children))

    fitted = list(lines(row, width))
    assert len(fitted) == size(row)
    deepest = max(cell_len(line.guides) for line in fitted)
    assert all(cell_len(line.text) <= max(width, deepest + 10) for line in fitted)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("字字", 3, "字…"), ("ab", 1, "…"), ("ab", 0, "")],
)
def test_shorten_adds_ellipsis(text, width, shown):
    assert shorten(text, width) == shown
