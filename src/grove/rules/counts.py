"""Limits on the size of a set: the pods of all its replicas together, and the pods of one gang.

Both are computed from the counts in the spec (`grove.api.types.pod_counts`), without expanding the set. A
stored set above the current limit may be changed and scaled in, but not scaled out.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, invalid
from grove.api.types import pod_counts
from grove.rules.decode import Workload
from grove.rules.model import Facts


def on_create(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Limits that a new set exceeds."""
    if (asked := _pods(workload)) > facts.pods_per_set:
        yield _too_many(workload, asked, facts)
    if not (gang := _gang(workload)).fits:
        yield _too_large(gang)


def on_update(stored: Workload, workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Limits that a change exceeds by more than the stored set does."""
    if (asked := _pods(workload)) > max(facts.pods_per_set, _pods(stored)):
        yield _too_many(workload, asked, facts)
    if not (gang := _gang(workload)).fits and gang.size > _gang(stored).size:
        yield _too_large(gang)


def _pods(workload: Workload) -> int:
    return pod_counts.of_set(workload.spec.replicas, workload.template)


def _gang(workload: Workload) -> pod_counts.GangSize:
    metadata = workload.metadata
    return pod_counts.largest_gang(
        metadata.namespace, metadata.effective_name, workload.spec.replicas, workload.template
    )


def _too_many(workload: Workload, asked: int, facts: Facts) -> FieldError:
    why = (
        f"the set asks for {asked} pods (spec.replicas times the replicas of cliques and groups), and at "
        f"most {facts.pods_per_set} are allowed: lower them, split the set, or raise limits.podsPerSet of "
        "the operator's configuration"
    )
    return invalid("spec.replicas", workload.spec.replicas, why)


def _too_large(gang: pod_counts.GangSize) -> FieldError:
    why = (
        f"one PodGang would name {gang.pods} pods in about {gang.size} bytes, and the API server stores at "
        f"most {pod_counts.LARGEST_GANG} bytes: lower replicas of cliques, or minAvailable of groups, and "
        "raise spec.replicas"
    )
    return invalid("spec.template.cliques", gang.pods, why)
