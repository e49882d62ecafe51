"""docs/reasons.md has a section for each code, in the order of the codes."""

from __future__ import annotations

import re

import pytest

from grove.reasons.codes import ReasonCode
from tests.shared import ROOT

PAGE = (ROOT / "docs/reasons.md").read_text()
SECTIONS = re.findall(r"^### (\w+)\n\n(.*?)(?=\n##|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def test_page_has_exactly_one_section_for_each_code():
    assert [name for name, _ in SECTIONS] == [code.value for code in ReasonCode]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section[0])
def test_section_has_meaning_evidence_and_remedy(section):
    meaning, evidence, remedy = re.split(r"^(?=Evidence:|Remedy:)", section[1], flags=re.MULTILINE)
    assert meaning.strip()
    assert re.fullmatch(r"Evidence: .+", evidence.strip(), re.DOTALL)
    assert re.fullmatch(r"Remedy: .+", remedy.strip(), re.DOTALL)
