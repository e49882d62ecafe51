"""A backend of somebody else that could not be made: its users are held and told why, nobody else is."""

from __future__ import annotations

from collections.abc import Iterator

from grove.schedulers.backend import Body, ForeignKind, Marks, Request, Unmappable, Wish


class Broken:
    """Stands in for a backend that raised when it was made."""

    keeps: ForeignKind | None = None
    minimum_first = False

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, f"scheduler backend {name} cannot be used: {why}"

    def told_name(self, gang: Body) -> str:
        return str(gang["metadata"]["name"])

    def told(self, request: Request) -> Body | None:  # noqa: ARG002 - whatever it is
        raise Unmappable(self._why)

    def marks(self, gang: Body, clique: str) -> Marks:  # noqa: ARG002 - there will be no pods
        return Marks()

    def cannot(self, wish: Wish) -> Iterator[str]:  # noqa: ARG002 - whatever it is
        yield self._why

    def cannot_keep(self, wish: Wish) -> Iterator[str]:  # noqa: ARG002 - nothing of it is taken
        yield from ()
