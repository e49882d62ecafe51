"""The tables of docs/rights.md."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.chart import ACCOUNT, ADMISSION, DASHBOARD
from tests.shared import ROOT

Right = tuple[str, str, str, str]
"""API group, resource, name, verb; an empty name: any."""
FEATURE_TABLES = {
    ACCOUNT: ("Features", "DynamoGraphDeployments"),
    ADMISSION: ("Features of the webhooks",),
    DASHBOARD: (),  # its rights do not depend on features
}
"""By account, the headings of tables whose first column names a feature."""


def documented(heading: str) -> set[Right]:
    """The rights in the table of one section."""
    return {right for cells in _rows(heading) for right in _rights(cells)}


def feature_names(account: str = ACCOUNT) -> set[str]:
    """The features that give rights to an account."""
    return {cells[0] for heading in FEATURE_TABLES[account] for cells in _rows(heading)}


def documented_of_feature(feature: str, account: str = ACCOUNT) -> set[Right]:
    """The rights in the rows of one feature."""
    return {
        right
        for heading in FEATURE_TABLES[account]
        for cells in _rows(heading)
        if cells[0] == feature
        for right in _rights(cells[1:])
    }


def _rows(heading: str) -> list[list[str]]:
    page = (ROOT / "docs/rights.md").read_text()
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines[2:]]


def _rights(cells: list[str]) -> Iterator[Right]:
    group, resources, verbs, names, _ = cells
    for resource, name, verb in itertools.product(resources.split(), names.split() or [""], verbs.split()):
        yield group, resource, name, verb
