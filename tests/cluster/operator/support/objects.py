"""Objects as the tests read them: one type for all kinds, decoded as the API server returns them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import well_known
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, SERVICES, Resource
from grove.operator.caches.resources import resource_of

SETS = resource_of(PodCliqueSet.KIND)
GROUPS = resource_of(PodCliqueScalingGroup.KIND)
CLIQUES = resource_of(PodClique.KIND)
GANGS = resource_of(PodGang.KIND)
PARTS = (GROUPS, CLIQUES, GANGS, PODS, SERVICES, RESOURCE_CLAIMS)


class AnyObject(Struct, frozen=True):
    """An object of any kind, with all fields of spec and status."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    regarding: dict[str, Any] = {}
    """This and the following fields are those of events."""
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
        """The status of a condition; empty if there is no such condition."""
        conditions = self.status.get("conditions") or ()
        return next((each["status"] for each in conditions if each["type"] == type_), "")

    @property
    def waits_for(self) -> str:
        """The code of the condition `Waiting`; empty if there is no such condition."""
        conditions = self.status.get("conditions") or ()
        return next((str(each["reason"]) for each in conditions if each["type"] == "Waiting"), "")

    @property
    def settled(self) -> bool:
        """Whether the status has observed the current generation and reports no error."""
        current = self.status.get("observedGeneration") == self.metadata.generation
        return current and not self.status.get("lastErrors")


def is_ready(pod: AnyObject) -> bool:
    """Whether a pod runs, is ready and is not terminating."""
    return not pod.terminating and pod.status.get("phase") == "Running" and pod.condition("Ready") == "True"


def updating(found: AnyObject) -> bool:
    """Whether an update of the object has started and not ended."""
    progress = found.status.get("updateProgress")
    return progress is not None and not progress.get("updateEndedAt")


def gated(pod: AnyObject) -> bool:
    """Whether a pod has the operator's scheduling gate."""
    return any(gate["name"] == well_known.GANG_GATE for gate in pod.spec.get("schedulingGates") or ())


def describe(resource: Resource, found: AnyObject) -> str:
    """An object in one line and its errors, for failed assertions; of an event its reason and note."""
    counts = {
        key: value
        for key, value in found.status.items()
        if key.lower().endswith(("replicas", "phase", "generation"))
    }
    parts = [resource.kind, found.name, f"replicas={found.spec.get('replicas')}", str(counts)]
    if found.reason:
        parts = [resource.kind, str(found.regarding.get("name")), found.reason, found.note]
    if found.terminating:
        parts.append(f"TERMINATING {found.metadata.finalizers}")
    if gates := found.spec.get("schedulingGates"):
        parts.append(f"gates={[gate['name'] for gate in gates]}")
    if nominated := found.status.get("nominatedNodeName"):
        parts.append(f"nominated={nominated}")
    unmet = [each for each in found.status.get("conditions") or () if each["status"] != "True"]
    parts += [f"\n    {each['type']} {each.get('reason')}: {each.get('message')}" for each in unmet]
    errors = found.status.get("lastErrors") or ()
    parts += [f"\n    {error['code']}: {error['description']}" for error in errors]
    return " ".join(parts)
