"""Whether a set's topology has the levels that the set asks for: the condition `TopologyLevelsUnavailable`.

It says whether constraints could be handed on to the scheduler, not whether the scheduler keeps to them.
"""

from __future__ import annotations

from grove.api.conditions import ConditionType
from grove.api.conditions import TopologyLevelsReason as Reason
from grove.api.meta import Condition
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetTemplate
from grove.topology.constraints import ResolvedTopology, domains
from grove.topology.nesting import inverted, nestings


def levels_unavailable(workload: PodCliqueSet, topology: ResolvedTopology | None) -> Condition | None:
    """The condition, yet without a date; None if there is nothing to say. No topology: constraints are
    switched off."""
    template = workload.spec.template
    wanted = domains(template)
    if topology is None and not wanted:
        return None
    status, reason, message = _judged(template, wanted, topology)
    return Condition(
        type=ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE,
        status=status,
        reason=reason,
        message=message,
        observed_generation=workload.metadata.generation,
    )


def _judged(
    template: PodCliqueSetTemplate, wanted: frozenset[str], topology: ResolvedTopology | None
) -> tuple[str, Reason, str]:
    if not wanted:
        return "False", Reason.ALL_AVAILABLE, "No topology constraints defined"
    if topology is None:
        message = "Topology constraints are defined but Topology Aware Scheduling is disabled"
        return "Unknown", Reason.SWITCHED_OFF, message
    if not topology.name:
        message = "PodCliqueSet topology constraints must include topologyName"
        return "Unknown", Reason.NAME_MISSING, message
    if not topology.found:
        message = f'ClusterTopology or ClusterTopologyBinding "{topology.name}" not found'
        return "True", Reason.NOT_FOUND, message
    if missing := sorted(wanted - topology.keys.keys()):
        message = f"Unavailable topology domains: [{', '.join(missing)}]"
        return "True", Reason.LEVELS_UNAVAILABLE, message
    if wrong := inverted(nestings(template), tuple(topology.keys)):
        # No level is lost, and constraints are handed on as ever: it is told, not made a problem of.
        message = "All topology levels are available, but in another order than the set was made for: "
        return "False", Reason.INVERTED, message + "; ".join(map(str, wrong))
    return "False", Reason.ALL_AVAILABLE, "All topology levels are available"
