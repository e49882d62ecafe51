"""A limit of a benchmark."""

from __future__ import annotations

from typing import NamedTuple


class Budget(NamedTuple):
    """A measured figure, and the most that it may be."""

    what: str
    is_: float
    at_most: float

    @property
    def kept(self) -> bool:
        return self.is_ <= self.at_most
