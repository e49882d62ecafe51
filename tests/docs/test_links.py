"""Every link between documents leads to a file that exists and to a heading that it has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shared import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links refer to them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_page_resolve(page: Path):
    text = re.sub(r"`[^`]*`", "", page.read_text())
    links = re.findall(r"\]\((?!https?://)([^)#\s]*)(?:#([\w-]+))?\)", text)
    wrong = []
    for target, anchor in links:
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(f"{target}#{anchor}")
    assert wrong == []


def test_every_guide_is_linked_from_the_index():
    index = (ROOT / "docs/README.md").read_text()
    guides = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(name for name in guides if f"({name})" not in index) == []
    decisions = (ROOT / "docs/decisions/README.md").read_text()
    pages = {page.name for page in (ROOT / "docs/decisions").glob("*.md")} - {"README.md"}
    assert sorted(name for name in pages if f"({name})" not in decisions) == []
