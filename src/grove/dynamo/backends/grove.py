"""The Grove backend: renders a graph as one PodCliqueSet, and reads its state from cliques and groups."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from grove.api.conditions import CliqueReason, ConditionType, TopologyLevelsReason
from grove.api.intents import Intent, Patch
from grove.api.meta import Condition
from grove.api.types.podclique import PodClique, PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys, naming
from grove.dynamo.admission import topology_rules
from grove.dynamo.admission.set_errors import errors_of_graph
from grove.dynamo.api.status import LEVELS, WAITING, ComponentStatus, RestartStatus
from grove.dynamo.backends import restarts, waiting
from grove.dynamo.backends.desired_set import new_set, updated_set
from grove.dynamo.backends.object_writes import contains, target, with_owner
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import podcliqueset
from grove.dynamo.snapshot import (
    CliqueOrGroup,
    ComponentState,
    GraphReason,
    GraphSnapshot,
    WorkloadPlan,
    clique_or_group_of,
)
from grove.dynamo.worker_generation import runtime_namespace
from grove.plan.conditions import find, new_condition
from grove.plan.writes import builders
from grove.rules.podcliqueset import validation

_OPTIONAL = ("priorityClassName", "podCliqueScalingGroups", "topologyConstraint")


class GroveBackend:
    """Writes the PodCliqueSet, scales its cliques and groups, and reads their state."""

    name = keys.GROVE

    def plan_workloads(self, graph: Graph, snapshot: GraphSnapshot) -> WorkloadPlan:
        """The set is validated here: the webhook does not validate writes of the operator."""
        if snapshot.workload is None:
            return _plan_creation(graph, snapshot)
        return _plan_update(graph, snapshot, snapshot.workload)

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        clique_or_group = clique_or_group_of(graph, component, snapshot)
        if clique_or_group is None:
            kind = (PodCliqueScalingGroup if component.multinode else PodClique).KIND.name
            message = f"{kind} {naming.component_object(graph, component)} does not exist yet"
            return ComponentState(None, "some_resources_are_not_ready", message)
        return _component_state(graph, component, clique_or_group, _generation(component, snapshot))

    def reasons(self, graph: Graph, snapshot: GraphSnapshot) -> list[GraphReason]:
        """None once all components are ready: the set removes its condition later."""
        unready = any(self.component_state(graph, each, snapshot).reason for each in graph.components)
        return waiting.reasons(snapshot) if unready else []

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
        return restarts.status(graph, snapshot)

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        """The conditions of the set, and whether the topology levels of the constraints exist."""
        if snapshot.workload is None:
            return []
        of_set = snapshot.workload.status.conditions
        found = [
            new_condition(f"grove.io/{each.type}", _holds(each), each.reason, each.message)
            for each in of_set
            if each.type != ConditionType.WAITING
        ]
        found += (
            new_condition(WAITING, True, each.code, each.message)
            for each in self.reasons(graph, snapshot)[:1]
        )
        if graph.constrained:
            found.append(_levels(find(of_set, ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)))
        return found


def _plan_creation(graph: Graph, snapshot: GraphSnapshot) -> WorkloadPlan:
    """Topology constraints are validated on creation only; afterwards conditions of the set report their
    state."""
    if errors := topology_rules.on_create(graph, snapshot.context):
        return WorkloadPlan(errors=tuple(errors))
    desired = new_set(graph, snapshot)
    wanted = desired.body
    if invalid := validation.on_create(wanted, snapshot.facts).errors:
        return WorkloadPlan(errors=tuple(errors_of_graph(graph, wanted, invalid, snapshot.facts)))
    annotations = {**wanted["metadata"].get("annotations", {}), keys.APPLIED: desired.spec_hash}
    wanted = {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}}
    return WorkloadPlan(writes=(builders.create(with_owner(graph, wanted)),))


def _plan_update(graph: Graph, snapshot: GraphSnapshot, existing: PodCliqueSet) -> WorkloadPlan:
    stored: Body = msgspec.json.decode(msgspec.json.encode(existing))
    desired = updated_set(graph, snapshot, existing, stored)
    wanted, spec_hash = desired.body, desired.spec_hash
    unchanged = existing.metadata.annotations.get(keys.APPLIED) == spec_hash
    if not unchanged:
        changed = {**wanted, "metadata": stored["metadata"]}  # updates write only the spec
        if invalid := validation.on_update(stored, changed, snapshot.facts).errors:
            return WorkloadPlan(errors=tuple(errors_of_graph(graph, wanted, invalid, snapshot.facts)))
    writes: list[Intent] = []
    if existing.metadata.deletion_timestamp is None:
        if not unchanged or not contains(wanted["spec"], stored["spec"]):
            annotations = {keys.APPLIED: spec_hash}
            body = {"metadata": {"annotations": annotations}, "spec": _merge_patch_spec(wanted["spec"])}
            writes.append(Patch(target(wanted), body))
        writes += _scale_writes(graph, snapshot)
    return WorkloadPlan(writes=tuple(writes), applied=podcliqueset.applied(graph, desired.settings))


def _scale_writes(graph: Graph, snapshot: GraphSnapshot) -> Iterator[Intent]:
    for component in graph.components:
        found = clique_or_group_of(graph, component, snapshot)
        if found is None or found.metadata.deletion_timestamp is not None:
            continue
        if found.spec.replicas != component.replicas:
            yield Patch(
                builders.target(found), {"spec": {"replicas": component.replicas}}, subresource="scale"
            )


def _merge_patch_spec(spec: Body) -> Body:
    """The spec as a merge patch: optional fields that are no longer wanted are set to null."""
    template = {**dict.fromkeys(_OPTIONAL), **spec["template"]}
    return {"updateStrategy": None, **spec, "template": template}


def _holds(condition: Condition) -> bool | None:
    return {"True": True, "False": False}.get(condition.status)


def _levels(of_set: Condition | None) -> Condition:
    if of_set is None:
        message = "The PodCliqueSet does not report its topology levels yet"
        return new_condition(LEVELS, None, "TopologyConditionPending", message)
    if of_set.status == "False":
        return new_condition(LEVELS, True, "AllTopologyLevelsAvailable", of_set.message)
    if of_set.reason == TopologyLevelsReason.NOT_FOUND:
        return new_condition(LEVELS, False, "TopologyDefinitionNotFound", of_set.message)
    if of_set.status == "True":
        return new_condition(LEVELS, False, "TopologyLevelsUnavailable", of_set.message)
    return new_condition(LEVELS, None, of_set.reason, of_set.message)


def _generation(component: GraphComponent, snapshot: GraphSnapshot) -> str:
    """The worker generation of a component in the existing set."""
    cliques = snapshot.workload.spec.template.cliques if snapshot.workload else ()
    name = naming.clique(component, naming.LEADER if component.multinode else "")
    return next((each.labels.get(keys.WORKER_HASH, "") for each in cliques if each.name == name), "")


def _component_state(
    graph: Graph, component: GraphComponent, clique_or_group: CliqueOrGroup, generation: str
) -> ComponentState:
    observed, observed_generation = clique_or_group.status, clique_or_group.status.observed_generation
    good = observed.ready_replicas if isinstance(observed, PodCliqueStatus) else observed.available_replicas
    status = ComponentStatus(
        component_kind=clique_or_group.KIND.name,
        component_names=(clique_or_group.metadata.name,),
        runtime_namespace=runtime_namespace(graph, component, generation),
        replicas=observed.replicas,
        updated_replicas=observed.updated_replicas,
        ready_replicas=None if component.multinode else good,
        available_replicas=good if component.multinode else None,
        scheduled_replicas=observed.scheduled_replicas if observed_generation else None,
    )
    current = 0 < clique_or_group.metadata.generation <= observed_generation
    return _state_from_counts(
        status, clique_or_group.spec.replicas, good, current=current, short=_lacks_nodes(observed)
    )


def _lacks_nodes(status: PodCliqueStatus | PodCliqueScalingGroupStatus) -> bool:
    """Whether pods of a clique are unscheduled; for a group only its counts show it."""
    if not isinstance(status, PodCliqueStatus):
        return False
    scheduled = find(status.conditions, ConditionType.CLIQUE_SCHEDULED)
    return status.schedule_gated_replicas > 0 or (
        scheduled is not None
        and scheduled.status == "False"
        and scheduled.reason == CliqueReason.INSUFFICIENT_SCHEDULED_PODS
    )


def _state_from_counts(
    status: ComponentStatus, desired: int, good: int, *, current: bool, short: bool
) -> ComponentState:
    """The state of a component with the first reason that applies."""
    counts = f"{good} of {desired} ready"
    if not current:
        return ComponentState(
            status, "some_resources_are_not_ready", "the latest generation is not reconciled yet"
        )
    if desired == 0 or status.replicas == status.updated_replicas == good == desired:
        return ComponentState(status)
    if short or 0 < (status.scheduled_replicas or 0) < desired:
        return ComponentState(
            status, "insufficient_capacity", f"{counts}, {status.scheduled_replicas} scheduled"
        )
    if status.updated_replicas != desired:
        return ComponentState(status, "updating", f"{counts}, {status.updated_replicas} updated")
    if status.replicas != desired:
        return ComponentState(status, "updating", f"{counts}, {status.replicas} exist")
    return ComponentState(status, "pods_not_ready", counts)
