"""At most one pod of a clique and index may run at any moment: no scheduling gate and no deletion timestamp.

A checker that is fed every version of every pod in the order of the API server. The phase does not count: a
pod that ended is deleted before its successor is created, too.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import labels, names

Slot = tuple[str, int]
"""UID of the clique, index of the pod."""


class PodVersion(Struct, frozen=True):
    """One version of a pod."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}

    @property
    def slot(self) -> Slot | None:
        """The slot in which the pod may run; None if it may not run, or belongs to no clique."""
        if self.metadata.deletion_timestamp is not None or self.spec.get("schedulingGates"):
            return None
        owners = [owner.uid for owner in self.metadata.owner_references if owner.controller]
        index = names.index_of_host(self.spec.get("hostname") or "")
        if index is None:
            text = self.metadata.labels.get(labels.POD_INDEX, "")
            index = int(text) if text.isdecimal() else None
        return (owners[0], index) if owners and index is not None else None


class RunnablePods:
    """Checks the pods that may run, by clique and index."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}
        """Slots by the name of the pod."""

    def saw(self, name: str, pod: PodVersion | None, what: str = "") -> None:
        """Take the next version of a pod, None once deleted. Raises if another pod may run in its slot."""
        self._slots.pop(name, None)
        slot = pod.slot if pod is not None else None
        if slot is None:
            return
        others = [other for other, held in self._slots.items() if held == slot]
        self._slots[name] = slot
        assert not others, f"{what or name}: {name} and {others} may run at index {slot[1]} of one clique"
