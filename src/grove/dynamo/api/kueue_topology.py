"""Kueue's own topologies, as far as they are read."""

from __future__ import annotations

from grove.api.meta import ObjectMeta
from grove.api.wire import Wire


class KueueTopologyLevel(Wire, frozen=True):
    """One kind of domain: the node label that tells them from each other."""

    node_label: str = ""


class KueueTopologySpec(Wire, frozen=True):
    """From broad to narrow."""

    levels: tuple[KueueTopologyLevel, ...] = ()


class KueueTopology(Wire, frozen=True):
    """A Topology of Kueue."""

    metadata: ObjectMeta
    spec: KueueTopologySpec = KueueTopologySpec()

    @property
    def labels(self) -> tuple[str, ...]:
        """The node labels that are levels of it."""
        return tuple(level.node_label for level in self.spec.levels)
