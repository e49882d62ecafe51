"""Causes in NVLink domains, with the stand-in for NVIDIA's driver."""

from __future__ import annotations

from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS
from grove.local.standins.dra.objects import DOMAINS, NEVER_READY
from grove.reasons.codes import ReasonCode as Code
from tests.cluster.operator.support.fabric import automatic, foreign_domain, gpus, small
from tests.cluster.operator.support.objects import is_ready
from tests.cluster.reasons.causes import NAME, Cause, CauseNode, quota
from tests.cluster.reasons.seeded import Seeded

MEMBERS = 60
"""More pods than nodes with a channel exist in the test."""
_COUNT = "count/computedomains.resource.nvidia.com"


async def domain_is_deleted(seeded: Seeded, cause: Cause) -> None:
    """A user deletes the domain, and a pod of it."""
    (pod,) = await seeded.until_pods(cause, is_ready)
    await seeded.client.delete(DOMAINS, f"{NAME}-0", namespace=cause.name, as_type=Object)
    await seeded.client.delete(PODS, pod.name, namespace=cause.name, as_type=Object)


OF_FABRIC = (
    Cause("domain-conflict", Code.COMPUTE_DOMAIN_CONFLICT, automatic(NAME, gpus("worker")),
          objects=((DOMAINS, foreign_domain(f"{NAME}-0", "other")),), gang=None),
    Cause("domain-refused", Code.COMPUTE_DOMAIN_FAILED, automatic(NAME, gpus("worker")),
          objects=(quota({_COUNT: "0"}, {_COUNT: "0"}),), gang=None),
    Cause("domain-deleted", Code.COMPUTE_DOMAIN_TERMINATING, automatic(NAME, gpus("worker")),
          (CauseNode(),), course=domain_is_deleted),
    Cause("domain-not-ready", Code.COMPUTE_DOMAIN_NOT_READY, automatic(NAME, gpus("worker")),
          (CauseNode(annotations={NEVER_READY: "true"}),)),
    Cause("too-few-channels", Code.ONE_MEMBER_POD_PER_NODE, automatic(NAME, small("worker", MEMBERS))),
)  # fmt: skip
