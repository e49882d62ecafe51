"""Removes the operator's scheduling gate and nominations from every pod when the operator is uninstalled.

No other component removes them: gated pods would wait for ever, and nominated ones would hold their nodes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from grove.kube.errors import Conflict, NotFound
from grove.plan.members import pod_state
from grove.plan.members.scheduling_gates import gates_without_ours


async def release_pods(client: Client, namespace: str | None = None) -> AsyncIterator[str]:
    """Release every pod that has the operator's gate, of one namespace if one is given; yields each pod as
    `namespace/name`."""
    selector = f"{labels.MANAGED_BY}={labels.OPERATOR}"
    found = await client.list(PODS, namespace=namespace, labels=selector, as_type=Pod)
    for pod in found.items:
        if pod_state.gated(pod) and not pod_state.terminating(pod) and await _release(client, pod):
            yield f"{pod.metadata.namespace}/{pod.metadata.name}"


async def _release(client: Client, pod: Pod) -> bool:
    """Remove the nomination first: a pod without the gate may be nominated by the scheduler."""
    meta = pod.metadata
    cleared = {"metadata": {"uid": meta.uid}, "status": {"nominatedNodeName": None}}
    released = {"metadata": {"uid": meta.uid}, "spec": {"schedulingGates": gates_without_ours(pod) or None}}
    try:
        if pod.status.nominated_node_name:
            await client.patch(
                PODS, meta.name, cleared, namespace=meta.namespace, subresource="status", as_type=Pod
            )
        await client.patch(PODS, meta.name, released, namespace=meta.namespace, as_type=Pod)
    except (Conflict, NotFound):  # gone, or another pod has its name
        return False
    return True
