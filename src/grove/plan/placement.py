"""The interface for assigning gangs to nodes. Gangs compete for the same nodes, so assignments are decided
for one gang after another under the work queue key for placement. The plan of a replica only requests
assignments and applies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from grove.api.types.podcliqueset import PodCliqueSet


class GangName(NamedTuple):
    """Namespace and name of a PodGang."""

    namespace: str
    name: str


class Assignment(Struct, frozen=True):
    """The assignment of a gang: the node selector for the pods of each of its cliques."""

    selectors: Mapping[str, Mapping[str, str]]

    def node_selector(self, clique: str) -> Mapping[str, str]:
        return self.selectors.get(clique, {})


class Assigner(Protocol):
    """Decides on assignments."""

    def applies_to(self, workload: PodCliqueSet) -> bool:
        """Whether the gangs of a set wait for an assignment; otherwise their pods are scheduled at once."""
        ...

    def assign(self, gang: GangName, given: Mapping[GangName, Assignment]) -> Assignment | None:
        """Returns an assignment for a gang next to those that were `given`; None if there is no room for it
        now."""
        ...


class NoAssigner:
    """The assigner for clusters where the scheduler alone decides: no gang waits for an assignment or gets
    one."""

    def applies_to(self, workload: PodCliqueSet) -> bool:  # noqa: ARG002 - the same for all sets
        return False

    def assign(self, gang: GangName, given: Mapping[GangName, Assignment]) -> Assignment | None:  # noqa: ARG002
        return None
