"""LPX: a scheduler that takes its placement from elsewhere. It only wants its name on the pods."""

from __future__ import annotations

from collections.abc import Iterator

from grove.schedulers import gangs
from grove.schedulers.backend import Body, ForeignKind, Marks, Request, Wish

NAME = "lpx-scheduler"


class Lpx:
    """The backend; its profile needs no configuration."""

    name = NAME
    keeps: ForeignKind | None = None
    minimum_first = False

    def told_name(self, gang: Body) -> str:
        return str(gang["metadata"]["name"])

    def told(self, request: Request) -> Body | None:  # noqa: ARG002 - it is told nothing
        return None

    def marks(self, gang: Body, clique: str) -> Marks:  # noqa: ARG002 - the scheduler's name is enough
        return Marks()

    def cannot(self, wish: Wish) -> Iterator[str]:  # noqa: ARG002 - whatever it is
        yield from ()

    def cannot_keep(self, wish: Wish) -> Iterator[str]:
        """Any constraint of ours."""
        for whose, _ in gangs.constraints(wish.template):
            yield (
                f"topologyConstraint on {whose} is not supported: placement must be expressed through the "
                "LPX workload contract"
            )
