"""A limit of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.table import Table


class Budget(NamedTuple):
    """A measured figure, and the most that it may be."""

    what: str
    is_: float
    at_most: float

    @property
    def kept(self) -> bool:
        return self.is_ <= self.at_most


def budget_table(title: str, budgets: Iterable[Budget], *, digits: int = 3) -> Table:
    """The budgets of a benchmark, and which of them are kept."""
    table = Table(title, "measured", "at most", "", box=None)
    for budget in budgets:
        mark = "[green]kept" if budget.kept else "[red]broken"
        table.add_row(budget.what, f"{budget.is_:.{digits}f}", f"{budget.at_most:.{digits - 1}f}", mark)
    return table
