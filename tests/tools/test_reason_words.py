"""The dashboard has a sentence for each reason, and it is text without marks."""

from __future__ import annotations

import pytest

from grove.reasons.codes import ReasonCode
from tools import reason_words


@pytest.mark.parametrize("code", list(ReasonCode))
def test_each_reason_has_a_sentence_without_markup(code: ReasonCode) -> None:
    text = reason_words.meaning(code, reason_words.DOCUMENT.read_text())
    assert text.endswith(".")
    assert not set("[]`\n") & set(text)
    assert "Evidence:" not in text


def test_links_marks_and_line_breaks_are_left_out() -> None:
    document = "\n### NodeTaint\n\nNodes have `a` [taint\nof theirs](x.md#y).\nEvidence: the taint.\n"
    assert reason_words.meaning(ReasonCode.NODE_TAINT, document) == "Nodes have a taint of theirs."


def test_a_reason_without_a_section_has_no_sentence() -> None:
    assert reason_words.meaning(ReasonCode.NODE_TAINT, "# Why pods wait\n") == ""
