"""Deletes the operator's PodGroups of scheduling.k8s.io/v1alpha2 before Kubernetes is upgraded to 1.37.

1.37 cannot decode them: while one is stored, PodGroups cannot be listed and the scheduler places no pod.
Their protection finalizer, which keeps them while pods name them, is removed. Pods keep running: an operator
on the upgraded cluster creates groups of the same names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from grove import timing
from grove.api.naming import labels, well_known
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import LEASES
from grove.kube.errors import Conflict, KubeError, NotFound
from grove.kube.leader.lease import Lease, is_held
from grove.operator.caches.resources import external_resource
from grove.schedulers.kube_podgroups import V1Alpha2

_GROUPS = external_resource(V1Alpha2.kind)


async def reject_running_operator(client: Client, lease_name: str) -> None:
    """Raises KubeError if an operator leads: it would create the groups again."""
    leases = await client.list(LEASES, as_type=Lease, fields=f"metadata.name={lease_name}")
    for lease in leases.items:
        if is_held(lease, datetime.now(UTC)):
            where = f"{lease.metadata.namespace}/{lease.metadata.name}"
            raise KubeError(
                f"an operator is running ({lease.spec.holder_identity} holds lease {where}) and would create "
                "the PodGroups again: scale its Deployment to 0 first"
            )


async def delete_pod_groups(client: Client) -> AsyncIterator[str]:
    """Delete the operator's PodGroups; yields each as `namespace/name`."""
    for _ in range(timing.FINALIZER_ATTEMPTS):
        groups = await _pod_groups(client, {labels.MANAGED_BY: labels.OPERATOR})
        if not groups:
            return
        for found in groups:
            if await _delete(client, found):
                yield f"{found.metadata.namespace}/{found.metadata.name}"
    raise KubeError("the PodGroups are created again: stop every operator first")


async def other_pod_groups(client: Client) -> list[str]:
    """The PodGroups that are left, which the operator did not create, as `namespace/name`."""
    groups = await _pod_groups(client, {})
    return [f"{found.metadata.namespace}/{found.metadata.name}" for found in groups]


async def _pod_groups(client: Client, wanted: dict[str, str]) -> list[Object]:
    try:
        return (await client.list(_GROUPS, as_type=Object, labels=wanted)).items
    except NotFound:  # the version is not served, so there are none
        return []


async def _delete(client: Client, found: Object) -> bool:
    meta = found.metadata
    try:
        reply = await client.delete(
            _GROUPS, meta.name, namespace=meta.namespace, uid=meta.uid, as_type=Object
        )
        if reply is None or not reply.metadata.finalizers:
            return True
        rest = [name for name in reply.metadata.finalizers if name != well_known.POD_GROUP_FINALIZER]
        body = {"metadata": {"resourceVersion": reply.metadata.resource_version, "finalizers": rest}}
        await client.patch(_GROUPS, meta.name, body, namespace=meta.namespace, as_type=Object)
    except NotFound:  # it is gone
        return True
    except Conflict:  # changed in between: the next attempt lists again
        return False
    return True
