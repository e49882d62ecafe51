"""Counts the pods of a clique by state. Terminating pods are not counted."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.desired.expand import Clique
from grove.plan.desired.restarts import is_restarted
from grove.plan.members import pod_state


class PodCounts(Struct, frozen=True, gc=False):
    """Counts over the pods of a clique."""

    replicas: int = 0
    ready: int = 0
    scheduled: int = 0
    gated: int = 0
    updated: int = 0
    unhealthy: int = 0
    """Scheduled, but failed or started and not ready: not available."""


def count_pods(members: Iterable[Pod], clique: Clique, upstream_hash: str = "") -> PodCounts:
    """Counts the pods of a clique; `upstream_hash` is upstream's hash of the same template."""
    living = [pod for pod in members if pod_state.alive(pod)]
    scheduled = [pod for pod in living if pod_state.scheduled(pod)]
    return PodCounts(
        replicas=len(living),
        ready=sum(map(pod_state.ready, living)),
        scheduled=len(scheduled),
        gated=sum(map(pod_state.has_scheduling_gates, living)),
        updated=sum(is_updated(pod, clique, upstream_hash) for pod in living),
        unhealthy=sum(pod_state.errored(pod) or pod_state.started_not_ready(pod) for pod in scheduled),
    )


def is_updated(pod: Pod, clique: Clique, upstream_hash: str = "") -> bool:
    """Whether a pod has the latest template, and was created after the restarts of its clique. The hash of
    the latest template is ours, and upstream's until the pods have ours."""
    written = pod.metadata.labels.get(labels.TEMPLATE_HASH)
    latest = written == clique.template_hash or (upstream_hash != "" and written == upstream_hash)
    return latest and is_restarted(pod.metadata.annotations, clique.restarts)
