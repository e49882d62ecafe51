"""How the pods of a clique fare, counted. Pods that are on their way out count for nothing."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.api import labels
from grove.api.pods import Pod
from grove.plan import pods as state


class Tally(Struct, frozen=True, gc=False):
    """Counts over the pods of a clique."""

    replicas: int = 0
    ready: int = 0
    scheduled: int = 0
    gated: int = 0
    updated: int = 0
    impaired: int = 0
    """Scheduled, but failed or not answering: not to be counted on."""


def tally(members: Iterable[Pod], template_hash: str, theirs: str = "") -> Tally:
    """Count the pods of a clique; `theirs` is upstream's word for the same template."""
    latest = (template_hash, theirs) if theirs else (template_hash,)
    living = [pod for pod in members if state.alive(pod)]
    placed = [pod for pod in living if state.scheduled(pod)]
    return Tally(
        replicas=len(living),
        ready=sum(map(state.ready, living)),
        scheduled=len(placed),
        gated=sum(map(state.gated_by_anybody, living)),
        updated=sum(pod.metadata.labels.get(labels.TEMPLATE_HASH) in latest for pod in living),
        impaired=sum(state.errored(pod) or state.started_not_ready(pod) for pod in placed),
    )
