"""Gates: a pod of a scaled gang is not scheduled before the base gang is, one of a gang that waits for its
place not before it has one. Once open, a gate stays open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grove.api import marks
from grove.api.intents import Patch
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.targets import foreign_target


def released(members: Iterable[Pod], place: Mapping[str, str]) -> list[Patch]:
    """Takes our gate, and only ours, off every pod that has it; the pod learns its place with it."""
    return [_release(pod, place) for pod in members if state.gated(pod) and not state.terminating(pod)]


def _release(pod: Pod, place: Mapping[str, str]) -> Patch:
    """Says which gates stay: if another took ours off first, that changes nothing."""
    others = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != marks.GANG_GATE]
    spec: dict[str, Any] = {"schedulingGates": others or None}
    if place:
        spec["nodeSelector"] = dict(place)
    return Patch(foreign_target("v1", "Pod", pod), {"metadata": {"uid": pod.metadata.uid}, "spec": spec})
