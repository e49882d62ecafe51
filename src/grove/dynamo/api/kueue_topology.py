"""Kueue's Topology, with the fields that the operator reads."""

from __future__ import annotations

from grove.api.meta import ObjectMeta
from grove.api.wire import Wire


class KueueTopologyLevel(Wire, frozen=True):
    """One level of a topology: the node label whose values are the domains."""

    node_label: str = ""


class KueueTopologySpec(Wire, frozen=True):
    """Levels from broad to narrow."""

    levels: tuple[KueueTopologyLevel, ...] = ()


class KueueTopology(Wire, frozen=True):
    """A Topology of Kueue."""

    metadata: ObjectMeta
    spec: KueueTopologySpec = KueueTopologySpec()

    @property
    def labels(self) -> tuple[str, ...]:
        """The node labels of its levels."""
        return tuple(level.node_label for level in self.spec.levels)
