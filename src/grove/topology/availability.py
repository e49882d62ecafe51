"""The condition `TopologyLevelsUnavailable` of a set: whether its topology has the levels that the set names,
and the topologies of its fallbacks those that the set names with each of them.

It says whether the constraints can be passed to the scheduler, not whether the scheduler satisfies them.
"""

from __future__ import annotations

from grove.api.conditions import ConditionType
from grove.api.conditions import TopologyLevelsReason as Reason
from grove.api.meta import Condition
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetTemplate
from grove.topology.constraints import ResolvedTopology, domains
from grove.topology.fallbacks import with_fallback
from grove.topology.nesting import inverted, nestings


def levels_unavailable(
    workload: PodCliqueSet,
    topology: ResolvedTopology | None,
    fallback_topologies: tuple[ResolvedTopology, ...] = (),
) -> Condition | None:
    """The condition, without a transition time; None for a set without constraints while topology-aware
    scheduling is disabled, which is what `topology` None means."""
    template = workload.spec.template
    wanted = domains(template)
    if topology is None and not wanted:
        return None
    status, reason, message = _evaluate(template, wanted, topology)
    if status == "False":
        for index, each in enumerate(fallback_topologies):
            attempt = with_fallback(template, index)
            of_fallback = _evaluate(attempt, domains(attempt), each)
            if of_fallback[0] != "False":
                status, reason, message = of_fallback
                message = f"topologyConstraint.fallbacks[{index}], which is not tried: {message}"
                break
    return Condition(
        type=ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE,
        status=status,
        reason=reason,
        message=message,
        observed_generation=workload.metadata.generation,
    )


def _evaluate(
    template: PodCliqueSetTemplate, wanted: frozenset[str], topology: ResolvedTopology | None
) -> tuple[str, Reason, str]:
    if not wanted:
        return "False", Reason.ALL_AVAILABLE, "No topology constraints defined"
    if (problem := unavailable(wanted, topology)) is not None:
        return problem
    if topology is not None and (wrong := inverted(nestings(template), tuple(topology.keys))):
        # No level is missing and the constraints are passed on unchanged: reported, but not as a problem.
        message = "All topology levels are available, but their order inverts constraints of the set: "
        return "False", Reason.INVERTED, message + "; ".join(map(str, wrong))
    return "False", Reason.ALL_AVAILABLE, "All topology levels are available"


def unavailable(wanted: frozenset[str], topology: ResolvedTopology | None) -> tuple[str, Reason, str] | None:
    """Status, reason and message if these domains cannot be translated to node labels; None if they can."""
    if topology is None:
        message = "Topology constraints are defined but Topology Aware Scheduling is disabled"
        return "Unknown", Reason.SWITCHED_OFF, message
    if not topology.name:
        message = (
            "PodCliqueSet topology constraints must include topologyName: add "
            "spec.template.topologyConstraint.topologyName, the name of a ClusterTopology, to the set"
        )
        return "Unknown", Reason.NAME_MISSING, message
    if not topology.found:
        message = f'ClusterTopology or ClusterTopologyBinding "{topology.name}" not found'
        return "True", Reason.NOT_FOUND, message
    if missing := sorted(wanted - topology.keys.keys()):
        message = f"Unavailable topology domains: [{', '.join(missing)}]"
        return "True", Reason.LEVELS_UNAVAILABLE, message
    return None


def has_all_levels(template: PodCliqueSetTemplate, topology: ResolvedTopology | None) -> bool:
    """Whether a topology has all levels that a template names."""
    return topology is not None and domains(template) <= topology.keys.keys()
