"""The Grove backend: renders a graph as one PodCliqueSet, and reads its state from cliques and groups."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api.conditions import CliqueReason, ConditionType, TopologyLevelsReason
from grove.api.intents import Create, Intent, Patch, Target
from grove.api.meta import Condition
from grove.api.types.podclique import PodClique, PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys, naming
from grove.dynamo.admission import topology_rules
from grove.dynamo.api.status import LEVELS, AppliedTopology, ComponentStatus, RestartStatus
from grove.dynamo.backends import restarts
from grove.dynamo.backends.object_writes import contains, digest, target, with_owner
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import podcliqueset
from grove.dynamo.render.image_pull_secrets import (
    current_secrets_in_set,
    matching_secrets,
    select_secrets,
    with_pull_secrets,
)
from grove.dynamo.snapshot import CliqueOrGroup, ComponentState, GraphSnapshot, clique_or_group_of
from grove.dynamo.worker_generation import runtime_namespace
from grove.plan.conditions import find, new_condition
from grove.plan.desired.objects import named_scheduler
from grove.rules.fabric import domains
from grove.rules.model import FieldError
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.topology.constraints import topology_name_of

_OPTIONAL = ("priorityClassName", "podCliqueScalingGroups", "topologyConstraint")


class GroveBackend:
    """Writes the PodCliqueSet, scales its cliques and groups, and reads their state."""

    name = keys.GROVE

    def problems(self, graph: Graph, snapshot: GraphSnapshot) -> list[FieldError]:
        """Errors of the set: the webhook does not validate writes of the operator. Topology constraints are
        validated on creation only; afterwards conditions of the set report their state."""
        existing = snapshot.workload
        if existing is None:
            errors = topology_rules.on_create(graph, snapshot.context)
            return errors or list(validation.on_create(self._desired(graph, snapshot), snapshot.facts).errors)
        wanted, stored = self._desired(graph, snapshot), _plain(existing)
        if _spec_hash(wanted) == existing.metadata.annotations.get(keys.APPLIED):
            return []
        changed = {**wanted, "metadata": stored["metadata"]}  # updates write only the spec
        return list(validation.on_update(stored, changed, snapshot.facts).errors)

    def writes(self, graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
        wanted, existing = self._desired(graph, snapshot), snapshot.workload
        spec_hash = _spec_hash(wanted)
        metadata = wanted["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), keys.APPLIED: spec_hash}
        if existing is None:
            return [Create(target(wanted), with_owner(graph, wanted))]
        if existing.metadata.deletion_timestamp is not None:
            return []
        found: list[Intent] = []
        applied = existing.metadata.annotations.get(keys.APPLIED) == spec_hash
        if not applied or not contains(wanted["spec"], _plain(existing)["spec"]):
            annotations = {keys.APPLIED: spec_hash}
            body = {"metadata": {"annotations": annotations}, "spec": _merge_patch_spec(wanted["spec"])}
            found.append(Patch(target(wanted), body))
        return [*found, *self._scale_writes(graph, snapshot)]

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        clique_or_group = clique_or_group_of(graph, component, snapshot)
        if clique_or_group is None:
            kind = (PodCliqueScalingGroup if component.multinode else PodClique).KIND.name
            message = f"{kind} {naming.component_object(graph, component)} does not exist yet"
            return ComponentState(None, "some_resources_are_not_ready", message)
        return _component_state(graph, component, clique_or_group, _generation(component, snapshot))

    def applied(self, graph: Graph, snapshot: GraphSnapshot) -> tuple[AppliedTopology, ...]:
        return (
            podcliqueset.applied(graph, self._render_settings(graph, snapshot)) if snapshot.workload else ()
        )

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
        return restarts.status(graph, snapshot)

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        """The conditions of the set, and whether the topology levels of the constraints exist."""
        if snapshot.workload is None:
            return []
        of_set = snapshot.workload.status.conditions
        found = [
            new_condition(f"grove.io/{each.type}", _holds(each), each.reason, each.message) for each in of_set
        ]
        if graph.constrained:
            found.append(_levels(find(of_set, ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)))
        return found

    def _render_settings(self, graph: Graph, snapshot: GraphSnapshot) -> podcliqueset.RenderSettings:
        """An existing set keeps its topology and its scheduler, even if the defaults have changed."""
        existing = snapshot.workload
        named = topology_name_of(existing.spec.template) if existing else ""
        scheduler = named_scheduler(existing) if existing else snapshot.context.scheduler
        if not named and graph.constrained:
            named = topology_rules.resolve(graph, snapshot.context)
        restart_ids = restarts.restart_ids(graph, snapshot)
        return podcliqueset.RenderSettings(topology=named, scheduler=scheduler, restarts=restart_ids)

    def _desired(self, graph: Graph, snapshot: GraphSnapshot) -> Body:
        """The desired set, with defaults and discovered image pull Secrets."""
        existing, secrets = snapshot.workload, snapshot.pull_secrets
        known = {each.name: current_secrets_in_set(each, existing) for each in graph.components}
        fit = {
            each.name: matching_secrets(graph, each, secrets, known[each.name]) for each in graph.components
        }
        if existing is None:
            return self._render(with_pull_secrets(graph, fit), snapshot)
        graph, wanted = self._as_created(with_pull_secrets(graph, known), snapshot, existing)
        if fit == known:
            return wanted
        changed = _changed(graph, wanted, existing)
        selected = {
            name: select_secrets(
                fit[name], known[name], changes=name in changed, started=name in snapshot.started
            )
            for name in fit
        }
        return wanted if selected == known else self._render(with_pull_secrets(graph, selected), snapshot)

    def _as_created(
        self, graph: Graph, snapshot: GraphSnapshot, existing: PodCliqueSet
    ) -> tuple[Graph, Body]:
        """The graph and its set. A set that was created without worker generations gets none before something
        else changes, so that an upgrade replaces no pods."""
        if not _carries_generations(existing):
            without = replace(graph, ignores_generations=True)
            before = self._render(without, snapshot)
            if _spec_hash(before) == existing.metadata.annotations.get(keys.APPLIED):
                return without, before
        return graph, self._render(graph, snapshot)

    def _render(self, graph: Graph, snapshot: GraphSnapshot) -> Body:
        """The set. An update keeps the replicas that it was created with: cliques and groups are scaled."""
        old = _plain(snapshot.workload) if snapshot.workload else None
        wanted = podcliqueset.workload(graph, self._render_settings(graph, snapshot))
        if old is not None:
            _keep_counts(wanted["spec"]["template"], old["spec"]["template"])
        filled = default_set(wanted, old)
        return domains.with_auto_annotation(filled, snapshot.facts) if old is None else filled

    def _scale_writes(self, graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
        found: list[Intent] = []
        for component in graph.components:
            clique_or_group = clique_or_group_of(graph, component, snapshot)
            if clique_or_group is None or clique_or_group.metadata.deletion_timestamp is not None:
                continue
            if clique_or_group.spec.replicas != component.replicas:
                about = Target(
                    clique_or_group.api_version,
                    clique_or_group.kind,
                    clique_or_group.metadata.name,
                    graph.namespace,
                )
                body = {"spec": {"replicas": component.replicas}}
                found.append(Patch(about, body, subresource="scale"))
        return found


def _plain(value: Any) -> Body:
    found: Body = msgspec.json.decode(msgspec.json.encode(value))
    return found


def _spec_hash(wanted: Body) -> str:
    return digest(wanted["spec"])


def _merge_patch_spec(spec: Body) -> Body:
    """The spec as a merge patch: optional fields that are no longer wanted are set to null."""
    template = {**dict.fromkeys(_OPTIONAL), **spec["template"]}
    return {"updateStrategy": None, **spec, "template": template}


def _keep_counts(template: Body, old: Body) -> None:
    """Copy the replicas of the existing set into the template, in place."""
    cliques = {each["name"]: each for each in old["cliques"]}
    groups = {each["name"]: each for each in old.get("podCliqueScalingGroups", ())}
    for clique in template["cliques"]:
        if known := cliques.get(clique["name"]):
            clique["spec"] = copy.copy(clique["spec"]) | {"replicas": known["spec"]["replicas"]}
    for group in template.get("podCliqueScalingGroups", ()):
        if known := groups.get(group["name"]):
            group["replicas"] = known["replicas"]


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


def _changed(graph: Graph, wanted: Body, existing: PodCliqueSet) -> set[str]:
    """Components whose pods are replaced anyway, since their template changes."""
    stored = {each["name"]: each for each in _plain(existing)["spec"]["template"]["cliques"]}
    updated = {
        each["name"]
        for each in wanted["spec"]["template"]["cliques"]
        if not contains(each, stored.get(each["name"]))
    }
    roles = ("", naming.LEADER, naming.WORKER)
    return {
        each.name for each in graph.components if any(naming.clique(each, role) in updated for role in roles)
    }


def _carries_generations(workload: PodCliqueSet) -> bool:
    return any(keys.WORKER_HASH in clique.labels for clique in workload.spec.template.cliques)


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
