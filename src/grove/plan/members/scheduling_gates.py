"""Removes scheduling gates. A pod of a scaled gang stays gated until the base gang is scheduled, one of a
gang that waits for nodes until it has them. A removed gate is never added again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

from grove.api.intents import Patch
from grove.api.naming import well_known
from grove.api.types.pod import Pod
from grove.plan.desired.podspec import PREFERRED, REQUIRED, prefer_nodes, require_labels
from grove.plan.members import pod_state
from grove.plan.placement.assignment import NO_NODE_LABELS, NodeLabels
from grove.plan.writes.builders import target_of_kind


def remove_gates(
    members: Iterable[Pod], template: Raw, node_labels: NodeLabels = NO_NODE_LABELS
) -> list[Patch]:
    """Removes the operator's gate, and no other, from every pod that has it, and adds the node labels of its
    assignment."""
    return [
        _remove_gate(pod, template, node_labels)
        for pod in members
        if pod_state.gated(pod) and not pod_state.terminating(pod)
    ]


def gates_without_ours(pod: Pod) -> list[dict[str, str]]:
    """The gates of a pod that others have set."""
    return [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != well_known.GANG_GATE]


def _remove_gate(pod: Pod, template: Raw, node_labels: NodeLabels) -> Patch:
    """Lists the gates that stay: if ours is removed already, the patch changes nothing."""
    spec: dict[str, Any] = {"schedulingGates": gates_without_ours(pod) or None}
    if node_labels.required:
        spec["nodeSelector"] = {**node_labels.required, **pod.spec.node_selector}
    node_affinity: dict[str, Any] = {}
    if node_labels.present:
        # Terms may only become narrower. Those of the pod count, which others may have added.
        own = msgspec.to_builtins(pod.spec.affinity)
        node_affinity[REQUIRED] = require_labels(own, node_labels.present)["nodeAffinity"][REQUIRED]
    if node_labels.preferred:
        affinity = msgspec.json.decode(template).get("affinity")
        node_affinity[PREFERRED] = prefer_nodes(affinity, node_labels.preferred)["nodeAffinity"][PREFERRED]
    if node_affinity:
        spec["affinity"] = {"nodeAffinity": node_affinity}
    return Patch(target_of_kind("v1", "Pod", pod), {"metadata": {"uid": pod.metadata.uid}, "spec": spec})
