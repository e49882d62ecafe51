"""Which nodes belong to a topology, by their labels.

    levels         zone   rack   host        zone a  ─┬─ rack 1 ── n1
    n1              a      1      n1                  └─ (n2 has no rack: it lies in zone a, and belongs to
    n2              a      -      n2                      another pool of nodes)
    n3              -      1      n3         n3 has no zone: its rack is no domain

A node lies in a domain of a level if it has the labels of that level and of all wider ones. It belongs to the
topology if it has those of narrower levels as well, as far as any node has them: nodes of another pool may
share the labels of wide levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grove.topology.placement.model import Domain


def domain_path(labels: Mapping[str, str], levels: Sequence[str]) -> Domain:
    """The values of all levels on a node; empty from the first level on whose label the node does not
    have."""
    values: list[str] = []
    for key in levels:
        if not (value := labels.get(key, "")):
            break
        values.append(value)
    return (*values, *[""] * (len(levels) - len(values)))


def depth(paths: Sequence[Domain]) -> int:
    """How many levels a node that belongs to the topology has: as many as any node has."""
    return max((sum(map(bool, path)) for path in paths), default=0)
