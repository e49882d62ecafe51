"""Sets while they change, in each output format."""

from __future__ import annotations

import json

import yaml
from msgspec.structs import replace
from rich.text import Text

from grove.cli.views.live.set_screens import open_sets_screen, same
from tests.views.builders import a_simulator, view

BEFORE = view(a_simulator(running=False))
AFTER = view(a_simulator())
OTHER = replace(AFTER, name="other")


def shown(output, capsys) -> list[str]:
    """What is printed for two states, one after the other."""

    def rendered(views, width):
        assert width is None
        return (Text(f"{each.name} {each.available}") for each in views)

    def changes(before, after):
        return (f"{old.available} -> {new.available}\x07" for old, new in zip(before, after, strict=False))

    found = []
    with open_sets_screen(output, rendered, changes, lambda each: [f"set/{each.name}"]) as screen:
        for views in ((BEFORE,), (AFTER, OTHER)):
            screen.show(views)
            found.append(capsys.readouterr().out)
    return found


def test_changes_are_lines_outside_of_a_terminal(capsys):
    assert shown("table", capsys) == ["demo 0\n", "0 -> 1\N{REPLACEMENT CHARACTER}\n"]


def test_each_state_is_a_document(capsys):
    states = [json.loads(text)["items"] for text in shown("json", capsys)]
    assert [[each["available"] for each in items] for items in states] == [[0], [1, 1]]
    documents = [yaml.safe_load(text)["items"] for text in shown("yaml", capsys)]
    assert documents == states


def test_each_name_is_shown_once(capsys):
    assert shown("name", capsys) == ["set/demo\n", "set/other\n"]


def test_age_alone_is_no_change():
    assert same(AFTER, replace(AFTER, age_seconds=99))
    assert not same(BEFORE, AFTER)
    assert not same(None, AFTER)
