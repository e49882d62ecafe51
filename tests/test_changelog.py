"""CHANGELOG.md has a section for the version of the project, made from the news."""

from __future__ import annotations

import re
import tomllib

from tests.shared import ROOT


def test_changelog_has_a_section_for_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert section is not None
    entries = re.findall(r"^- (.*) \(#\d+\)$", section[1], re.MULTILINE)
    assert len(entries) > 100
    assert len(set(entries)) == len(entries)
