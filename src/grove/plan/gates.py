"""Gates: a pod of a scaled gang is not scheduled before the base gang is. Once open, a gate stays open."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api import marks
from grove.api.intents import Patch, PatchType, Target
from grove.api.pods import Pod
from grove.plan import pods as state


def released(members: Iterable[Pod]) -> list[Patch]:
    """Takes our gate, and only ours, off every pod that has it."""
    return [_release(pod) for pod in members if state.gated(pod) and not state.terminating(pod)]


def _release(pod: Pod) -> Patch:
    place = [gate.name for gate in pod.spec.scheduling_gates].index(marks.GANG_GATE)
    path = f"/spec/schedulingGates/{place}"
    return Patch(
        Target("v1", "Pod", pod.metadata.name, pod.metadata.namespace),
        [
            {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
            {"op": "test", "path": f"{path}/name", "value": marks.GANG_GATE},
            {"op": "remove", "path": path},
        ],
        type=PatchType.JSON,
    )
