"""Explanations on the screen: the beginning early, then the rest."""

from __future__ import annotations

from msgspec.structs import replace

from grove.cli.views.explanation_screen import ExplanationScreen
from grove.explanation.early import EarlyAnswer
from grove.explanation.model import ContainerView, Explanation, ObjectRef, ReasonView
from grove.reasons.codes import ReasonCode

REASON = ReasonView(ReasonCode.NODE_CORDONED, "node a is cordoned", "kubectl uncordon it")
EARLY = Explanation(ObjectRef("PodCliqueSet", "demo", "ml"), "0/1 replicas available", True, (REASON,))
WHOLE = replace(EARLY, containers=(ContainerView("demo-0", "main", "Waiting"),))
BEGINNING = [
    "PodCliqueSet ml/demo: 0/1 replicas available",
    "1. NodeCordoned",
    "   node a is cordoned",
    "   -> kubectl uncordon it",
]
REST = ["containers", "  demo-0 main: Waiting"]


def printed(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_rest_is_shown_below_the_beginning(capsys):
    screen = ExplanationScreen()
    screen.show_early(EarlyAnswer(EARLY, has_reasons=True))
    assert printed(capsys) == BEGINNING
    screen.show(WHOLE)
    assert printed(capsys) == REST


def test_state_alone_is_shown_without_reasons(capsys):
    screen = ExplanationScreen()
    screen.show_early(EarlyAnswer(replace(EARLY, reasons=()), has_reasons=False))
    assert printed(capsys) == BEGINNING[:1]
    screen.show(WHOLE)
    assert printed(capsys) == [*BEGINNING[1:], *REST]


def test_what_has_changed_meanwhile_is_shown_as_a_whole(capsys):
    screen = ExplanationScreen()
    screen.show_early(EarlyAnswer(EARLY, has_reasons=True))
    printed(capsys)
    screen.show(replace(WHOLE, state="1/1 replicas available"))
    assert printed(capsys) == ["", "PodCliqueSet ml/demo: 1/1 replicas available", *BEGINNING[1:], *REST]


def test_explanation_of_a_snapshot_has_no_beginning(capsys):
    ExplanationScreen().show(WHOLE)
    assert printed(capsys) == [*BEGINNING, *REST]
