"""Views of the topology that a set names. Pure."""

from __future__ import annotations

from grove.api.conditions import ConditionType
from grove.api.types.podcliqueset import PodCliqueSet
from grove.topology.constraints import topology_name_of
from grove.views.claim_view import View


class TopologyView(View, frozen=True):
    """The topology of a set, the domain that each replica must be in, and why constraints do not apply."""

    name: str
    required: str = ""
    problem: str = ""


def topology_view(workload: PodCliqueSet) -> TopologyView | None:
    """The topology of a set; None if it has no constraints."""
    template = workload.spec.template
    name, problem = topology_name_of(template), _problem(workload)
    if not (name or problem):
        return None
    constraint = template.topology_constraint
    return TopologyView(name, constraint.required if constraint is not None else "", problem)


def _problem(workload: PodCliqueSet) -> str:
    found = {each.type: each for each in workload.status.conditions}
    levels = found.get(ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)
    if levels is not None and levels.status != "False":
        return levels.message or levels.reason
    enforced = found.get(ConditionType.CONSTRAINTS_ENFORCED)
    if enforced is not None and enforced.status == "False":
        return enforced.message or enforced.reason
    return ""
