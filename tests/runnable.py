"""At most one pod of a clique and index may run at any moment: no scheduling gate and no deletion timestamp.

A checker that is fed every version of every pod in the order of the API server. The phase does not count: a
pod that ended is deleted before its successor is created, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grove.api import labels, names

Slot = tuple[str, int]
"""UID of the clique, index of the pod."""


class RunnablePods:
    """The pods that may run, by clique and index."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}
        """By the name of the pod."""

    def saw(self, name: str, pod: Mapping[str, Any] | None, what: str) -> None:
        """The next version of a pod, None once it is gone. Raises if another pod may run in its slot."""
        self._slots.pop(name, None)
        slot = None if pod is None else _slot(pod)
        if slot is None:
            return
        others = [other for other, held in self._slots.items() if held == slot]
        self._slots[name] = slot
        assert not others, f"{what}: {name} and {others[0]} both may run at index {slot[1]} of their clique"


def _slot(pod: Mapping[str, Any]) -> Slot | None:
    metadata, spec = pod["metadata"], pod["spec"]
    if metadata.get("deletionTimestamp") or spec.get("schedulingGates"):
        return None
    owners = [owner["uid"] for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    index = names.index_of_host(spec.get("hostname") or "")
    if index is None:
        text = metadata.get("labels", {}).get(labels.POD_INDEX, "")
        index = int(text) if text.isdecimal() else None
    return (owners[0], index) if owners and index is not None else None
