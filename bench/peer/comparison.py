"""Our operator and a peer side by side, each against the floors of its own control plane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.table import Table

Result = dict[str, Any]


class Figure(NamedTuple):
    """What an operator needed, and what a client without any logic did; None: there is no such floor."""

    value: float
    floor: float | None = None

    @property
    def cells(self) -> tuple[str, str, str]:
        """Floor, value and ratio."""
        if not self.floor:
            return "", f"{self.value:.2f}", ""
        return f"{self.floor:.2f}", f"{self.value:.2f}", f"{self.value / self.floor:.2f}"


def comparison(result: Result) -> Table:
    """One row for each figure that was measured of our operator, of the peer, or of both."""
    peer = result["peer"]
    name = str(peer["command"])
    table = Table("", "floor", "ours", "ratio", "its floor", f"peer: {name}", "ratio", box=None)
    ours, others = figures(result), figures({**peer, "ours": peer.get("operator")})
    for what in ours | others:
        pair = (ours.get(what), others.get(what))
        table.add_row(what, *(cell for each in pair for cell in (each.cells if each else ("", "", ""))))
    return table


def figures(result: Result) -> dict[str, Figure]:
    """The figures of one operator, by what they say."""
    return dict(_figures(result))


def _figures(result: Result) -> Iterator[tuple[str, Figure]]:
    if ours := result.get("ours"):
        floor = result.get("floor", {})
        yield "pods created, s", Figure(ours["created"], floor.get("created"))
        yield "pods ready, s", Figure(ours["ready"], floor.get("ready"))
        yield "CPU, s", Figure(ours["cpu"], floor.get("cpu"))
        yield "memory, MiB", Figure(ours["rss_mib"])
        yield "calls per pod", Figure(ours["calls"] / ours["pods"])
        yield "calls per minute at rest", Figure(ours["idle_calls"])
        yield "calls after an annotation is touched", Figure(ours["annotation_calls"])
        yield "half scaled in, s", Figure(ours["deleted_half"], floor.get("deleted_half"))
        yield "all deleted, s", Figure(ours["deleted"], floor.get("deleted"))
        yield "cliques and gangs gone after the pods, s", Figure(ours["deleted"] - ours["pods_deleted"])
    if small := result.get("small"):
        yield "10 pods, apply to ready, s", Figure(small["ready"], small["floor_ready"])
    if updated := result.get("updated"):
        yield "rolling update, s", Figure(updated["seconds"])
        yield "calls for each pod of a rolling update", Figure(updated["calls"] / updated["pods"])
