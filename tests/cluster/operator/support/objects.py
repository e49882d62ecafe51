"""Objects as the tests see them: whole, and as the server tells them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import well_known
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, SERVICES
from grove.operator.caches.registry import resource_of

SETS = resource_of(PodCliqueSet.KIND)
GROUPS = resource_of(PodCliqueScalingGroup.KIND)
CLIQUES = resource_of(PodClique.KIND)
GANGS = resource_of(PodGang.KIND)
PARTS = (GROUPS, CLIQUES, GANGS, PODS, SERVICES, RESOURCE_CLAIMS)


class AnyObject(Struct, frozen=True):
    """Any object, whole."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    regarding: dict[str, Any] = {}
    """Of events, as what follows."""
    reason: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def owners(self) -> tuple[str, ...]:
        return tuple(owner.uid for owner in self.metadata.owner_references)

    def condition(self, type_: str) -> str:
        """The status of a condition; empty if it is not there."""
        said = self.status.get("conditions") or ()
        return next((fact["status"] for fact in said if fact["type"] == type_), "")

    @property
    def settled(self) -> bool:
        """Whether the status is about the spec as it is, and free of errors."""
        current = self.status.get("observedGeneration") == self.metadata.generation
        return current and not self.status.get("lastErrors")


def answers(pod: AnyObject) -> bool:
    """It runs and is ready."""
    return not pod.terminating and pod.status.get("phase") == "Running" and pod.condition("Ready") == "True"


def updating(found: AnyObject) -> bool:
    """An update of it has begun and not ended."""
    progress = found.status.get("updateProgress")
    return progress is not None and not progress.get("updateEndedAt")


def gated(pod: AnyObject) -> bool:
    """It waits for the operator."""
    return any(gate["name"] == well_known.GANG_GATE for gate in pod.spec.get("schedulingGates") or ())
