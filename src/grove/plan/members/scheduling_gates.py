"""Removes scheduling gates. A pod of a scaled gang stays gated until the base gang is scheduled, one of a
gang that waits for an assignment until it has one. A removed gate is never added again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grove.api.intents import Patch
from grove.api.naming import well_known
from grove.api.types.pod import Pod
from grove.plan.members import pod_state
from grove.plan.writes.builders import target_of_kind


def remove_gates(members: Iterable[Pod], node_selector: Mapping[str, str]) -> list[Patch]:
    """Removes the operator's gate, and no other, from every pod that has it, and sets the node selector of
    its assignment."""
    return [
        _remove_gate(pod, node_selector)
        for pod in members
        if pod_state.gated(pod) and not pod_state.terminating(pod)
    ]


def _remove_gate(pod: Pod, node_selector: Mapping[str, str]) -> Patch:
    """Lists the gates that stay: if ours is removed already, the patch changes nothing."""
    others = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != well_known.GANG_GATE]
    spec: dict[str, Any] = {"schedulingGates": others or None}
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    return Patch(target_of_kind("v1", "Pod", pod), {"metadata": {"uid": pod.metadata.uid}, "spec": spec})
