"""Gates: a pod of a scaled gang is not scheduled before the base gang is. Once open, a gate stays open."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api import marks
from grove.api.intents import Patch
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.targets import foreign_target


def released(members: Iterable[Pod]) -> list[Patch]:
    """Takes our gate, and only ours, off every pod that has it."""
    return [_release(pod) for pod in members if state.gated(pod) and not state.terminating(pod)]


def _release(pod: Pod) -> Patch:
    """Says which gates stay: if another took ours off first, that changes nothing."""
    others = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != marks.GANG_GATE]
    body = {"metadata": {"uid": pod.metadata.uid}, "spec": {"schedulingGates": others or None}}
    return Patch(foreign_target("v1", "Pod", pod), body)
