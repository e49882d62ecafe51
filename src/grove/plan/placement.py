"""Where gangs go. It is decided for one gang after another under a key of its own, since gangs compete for
the same nodes; the plan of a replica asks for places and takes what it is given, and never decides itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from grove.api.types.podcliqueset import PodCliqueSet


class GangName(NamedTuple):
    """A gang anywhere in the cluster."""

    namespace: str
    name: str


class Assignment(Struct, frozen=True):
    """The place of a gang: the node labels that the pods of each of its cliques must find."""

    selectors: Mapping[str, Mapping[str, str]]

    def node_selector(self, clique: str) -> Mapping[str, str]:
        return self.selectors.get(clique, {})


class Assigner(Protocol):
    """Decides on places."""

    def applies_to(self, workload: PodCliqueSet) -> bool:
        """Whether the gangs of a set wait for a place; pods of those that do not are scheduled at once."""
        ...

    def assign(self, gang: GangName, given: Mapping[GangName, Assignment]) -> Assignment | None:
        """A place for a gang beside those that were given; None if there is no room for it now."""
        ...


class NoAssigner:
    """The assigner of clusters where the scheduler alone decides: no gang waits, none is given a place."""

    def applies_to(self, workload: PodCliqueSet) -> bool:  # noqa: ARG002 - whatever it is
        return False

    def assign(self, gang: GangName, given: Mapping[GangName, Assignment]) -> Assignment | None:  # noqa: ARG002
        return None
