"""Gates: a pod of a scaled gang is not scheduled before the base gang is, one of a gang that waits for its
place not before it has one. Once open, a gate stays open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grove.api.intents import Patch
from grove.api.naming import well_known
from grove.api.types.pod import Pod
from grove.plan.members import pod_state
from grove.plan.writes.builders import target_of_kind


def remove_gates(members: Iterable[Pod], node_selector: Mapping[str, str]) -> list[Patch]:
    """Takes our gate, and only ours, off every pod that has it; the pod learns its place with it."""
    return [
        _remove_gate(pod, node_selector)
        for pod in members
        if pod_state.gated(pod) and not pod_state.terminating(pod)
    ]


def _remove_gate(pod: Pod, node_selector: Mapping[str, str]) -> Patch:
    """Says which gates stay: if another took ours off first, that changes nothing."""
    others = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != well_known.GANG_GATE]
    spec: dict[str, Any] = {"schedulingGates": others or None}
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    return Patch(target_of_kind("v1", "Pod", pod), {"metadata": {"uid": pod.metadata.uid}, "spec": spec})
