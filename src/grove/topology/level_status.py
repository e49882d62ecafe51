"""How the nodes of a cluster match the levels of a topology, for the topology's status: how many nodes have
which label, and whether each narrower domain lies inside one broader domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grove import timing
from grove.api.types.clustertopology import TopologyLevel, TopologyLevelStatus


def level_statuses(
    levels: Sequence[TopologyLevel], nodes: Iterable[Mapping[str, str]]
) -> tuple[TopologyLevelStatus, ...]:
    """One entry per level, from the labels of all nodes."""
    labelled = [0] * len(levels)
    parents: list[dict[str, set[str]]] = [{} for _ in levels]
    """By level and value, the values of the next broader level on the same nodes."""
    for labels in nodes:
        outer = ""
        for index, level in enumerate(levels):
            value = labels.get(level.key, "")
            if value:
                labelled[index] += 1
                parents[index].setdefault(value, set()).add(outer)
            outer = value
    return tuple(
        _entry(level, labelled[index], parents[index], levels[index - 1].domain if index else "")
        for index, level in enumerate(levels)
    )


def _entry(
    level: TopologyLevel, labelled: int, parents: dict[str, set[str]], outer: str
) -> TopologyLevelStatus:
    split = sorted(value for value, outer_values in parents.items() if outer and len(outer_values) > 1)
    return TopologyLevelStatus(
        domain=level.domain,
        labelled_nodes=labelled,
        values=len(parents),
        nesting_violations=len(split),
        examples=tuple(
            f"{level.domain} {value} is in {outer} {_format_values(parents[value])}"
            for value in split[: timing.LEVEL_EXAMPLES]
        ),
    )


def _format_values(values: set[str]) -> str:
    named = [value or "(none)" for value in sorted(values)]
    return " and ".join(
        [
            *named[: timing.LEVEL_DOMAINS_NAMED],
            *(["others"] if len(named) > timing.LEVEL_DOMAINS_NAMED else []),
        ]
    )
