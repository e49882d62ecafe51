"""What a live view prints: each change once."""

from __future__ import annotations

import json

import yaml
from msgspec.structs import replace

from grove.cli.views.status.event_screen import EventScreen
from grove.cli.views.status.status_screen import open_screen
from grove.explanation.model import ObjectRef
from grove.views.operator_view import OperatorView
from grove.views.status.model import RoleView, StatusView, Verdict
from tests.cli.views.status.test_event_lines import EVENTS

OPERATOR = OperatorView(True, "ns/lease", "me", "2027-01-15T07:59:58Z", 2)
STARTING = StatusView(
    ObjectRef("PodCliqueSet", "demo", "team"),
    Verdict.PROGRESSING,
    "0/1 pods ready",
    OPERATOR,
    roles=(RoleView("router", 0, 1, 1),),
)
RENEWED = replace(STARTING, operator=replace(OPERATOR, renewed="2027-01-15T08:00:00Z", renewed_seconds_ago=0))
HEALTHY = replace(
    RENEWED, verdict=Verdict.HEALTHY, summary="1/1 pods ready", roles=(RoleView("router", 1, 1, 1),)
)


def test_changed_lines_follow_below_the_verdict(capsys):
    with open_screen("table", "lease", live=True) as screen:
        for each in (STARTING, RENEWED, HEALTHY):
            screen.show(each)
    assert capsys.readouterr().out.splitlines() == [
        "PodCliqueSet team/demo: Progressing",
        "0/1 pods ready",
        "operator: me leads",
        "roles",
        "  ROLE    READY  UPDATED",
        "  router  0/1    1/1",
        "PodCliqueSet team/demo: Healthy",
        "1/1 pods ready",
        "  router  1/1    1/1",
    ]


def test_each_change_is_one_document(capsys):
    with open_screen("yaml", "lease", live=True) as screen:
        for each in (STARTING, RENEWED, HEALTHY):
            screen.show(each)
    found = yaml.safe_load_all(capsys.readouterr().out)
    assert [each["verdict"] for each in found] == ["Progressing", "Healthy"]


def test_live_events_are_documents_of_their_own(capsys):
    screen = EventScreen("yaml")
    screen.show(EVENTS[:1], live=True)
    again = [*EVENTS, replace(EVENTS[0], time="2027-01-15T08:00:00Z", count=2)]
    screen.show(again, live=True)
    screen.show(again, live=True)
    found = yaml.safe_load_all(capsys.readouterr().out)
    assert [(each["reason"], each.get("count", 1)) for each in found] == [
        ("Created", 1), ("Failed", 9), ("Created", 2),
    ]  # fmt: skip


def test_events_that_there_are_form_one_document(capsys):
    EventScreen("json").show(EVENTS)
    assert [each["reason"] for each in json.loads(capsys.readouterr().out)["items"]] == ["Created", "Failed"]
