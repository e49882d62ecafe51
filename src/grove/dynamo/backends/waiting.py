"""Why pods of a graph wait, with the Grove backend: what its set, cliques and groups report.

Their errors are read as well: the condition `Waiting` of the set follows seconds later.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.conditions import ConditionType
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.snapshot import CliqueOrGroup, GraphReason, GraphSnapshot
from grove.plan.conditions import find
from grove.reasons.codes import MOMENTARY, ReasonCode, rank
from grove.reasons.errors import error_reasons
from grove.reasons.graph_remedies import adapted_to
from grove.reasons.model import ObjectName

_CODES = {code.value: rank(code) for code in ReasonCode}


def reasons(snapshot: GraphSnapshot) -> list[GraphReason]:
    """One reason for each code: that of the set first, then what keeps everything else from happening."""
    if snapshot.workload is None:
        return []
    found: dict[str, GraphReason] = {}
    for each in (*_written(snapshot), *_errors(snapshot, snapshot.workload)):
        found.setdefault(each.code, each)
    return sorted(found.values(), key=lambda each: _CODES.get(each.code, len(_CODES)))


def _written(snapshot: GraphSnapshot) -> Iterator[GraphReason]:
    """What conditions say. The set has the numbers, which cliques and groups leave out."""
    for each in (snapshot.workload, *_parts(snapshot)):
        waiting = find(each.status.conditions, ConditionType.WAITING) if each is not None else None
        if waiting is not None and waiting.status == "True":
            yield GraphReason(waiting.reason, waiting.message)


def _errors(snapshot: GraphSnapshot, workload: PodCliqueSet) -> Iterator[GraphReason]:
    """What could not be written for the set, and for cliques and groups with pods that are not ready, unless
    that is usual for a moment."""
    adapt = adapted_to(workload.metadata)
    found = error_reasons(workload.status.last_errors)
    for part in _parts(snapshot):
        about = ObjectName(part.KIND.name, part.metadata.name)
        found += error_reasons(part.status.last_errors, about, pods_ready=_is_ready(part))
    for each in found:
        if each.code not in MOMENTARY:
            yield GraphReason(each.code, adapt(each).line)


def _parts(snapshot: GraphSnapshot) -> tuple[CliqueOrGroup, ...]:
    return (*snapshot.groups.values(), *snapshot.cliques.values())


def _is_ready(part: CliqueOrGroup) -> bool:
    good = part.status.ready_replicas if isinstance(part, PodClique) else part.status.available_replicas
    return good >= part.spec.replicas
