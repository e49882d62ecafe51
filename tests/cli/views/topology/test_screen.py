"""Topology trees on screens: documents, and lines for what has changed."""

from __future__ import annotations

import json

import yaml
from msgspec.structs import replace

from grove.cli.views.topology.screen import changes, open_screen
from grove.views.topology.domain_view import topology_tree
from tests.views.topology.builders import CLUSTER, LEVELS, a_node

BEFORE = [topology_tree("default", LEVELS, CLUSTER)]


def after(**changed: object) -> list:
    """The same cluster, with another state of node a2."""
    nodes = [replace(node, **changed) if node.name == "a2" else node for node in CLUSTER]
    return [topology_tree("default", LEVELS, nodes)]


def test_change_of_a_node_is_one_line():
    assert list(changes(BEFORE, after(ours=0))) == ["zone z1, rack r1, node a2: 0 ours, 2 others, 6/8 free"]
    assert list(changes(BEFORE, after(cordoned=True, taints=("x",)))) == [
        "zone z1, rack r1, node a2: 4 ours, 2 others, 0/8 free, cordoned, taint x"
    ]
    assert list(changes(BEFORE, BEFORE)) == []


def test_added_and_removed_nodes_are_lines():
    now = [topology_tree("default", LEVELS, [*CLUSTER[1:], a_node("new", "z2/r9")])]
    assert list(changes(BEFORE, now)) == [
        "node a1: removed",
        "zone z2, rack r9, node new: 0 ours, 0 others, 8/8 free",
    ]


def test_pipe_has_the_tree_once_then_changes(capsys):
    with open_screen("text", nodes=False, live=True) as screen:
        screen.show(BEFORE)
        screen.show(BEFORE)
        screen.show(after(ours=0))
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "topology default: zone > rack > host"
    assert printed.count(printed[0]) == 1
    assert printed[-1] == "zone z1, rack r1, node a2: 0 ours, 2 others, 6/8 free"


def test_documents_have_all_domains(capsys):
    with open_screen("json", nodes=False, live=False) as screen:
        screen.show(BEFORE)
    by_json = json.loads(capsys.readouterr().out)
    with open_screen("yaml", nodes=False, live=False) as screen:
        screen.show(BEFORE)
    assert yaml.safe_load(capsys.readouterr().out) == by_json
    (topology,) = by_json["topologies"]
    assert topology["cluster"]["gpus"] == {"total": 56, "ours": 12, "others": 11, "free": 18, "blocked": 15}
    assert topology["levels"][1] | {"slots": {}} == {"name": "rack", "label": "r", "domains": 3, "slots": {}}


def test_titles_are_shown_before_the_nodes_are_known(capsys):
    with open_screen("text", nodes=False, live=False) as screen:
        screen.begin([topology_tree("default", LEVELS, ())])
        begun = capsys.readouterr().out.splitlines()
        screen.show(BEFORE)
    rest = capsys.readouterr().out.splitlines()
    with open_screen("text", nodes=False, live=False) as screen:
        screen.show(BEFORE)
    assert [*begun, *rest] == capsys.readouterr().out.splitlines()
    assert begun[0] == "topology default: zone > rack > host"


def test_other_title_meanwhile_is_shown_below(capsys):
    with open_screen("text", nodes=False, live=False) as screen:
        screen.begin([topology_tree("gone", LEVELS, ())])
        screen.show(BEFORE)
    printed = capsys.readouterr().out.splitlines()
    assert [printed[0], printed[2:4]] == [
        "topology gone: zone > rack > host",
        ["", "topology default: zone > rack > host"],
    ]
