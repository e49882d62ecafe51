"""Grove as the backend: one PodCliqueSet for the deployment."""

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
from grove.dynamo.render import image_pull_secrets, podcliqueset
from grove.dynamo.snapshot import CliqueOrGroup, ComponentState, GraphSnapshot, clique_or_group_of
from grove.dynamo.worker_generation import runtime_namespace
from grove.plan.desired.objects import named_scheduler
from grove.plan.status.conditions import find, new_condition
from grove.rules.fabric import domains
from grove.rules.model import FieldError
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.topology.constraints import topology_name_of

_OPTIONAL = ("priorityClassName", "podCliqueScalingGroups", "topologyConstraint")


class GroveBackend:
    """Makes a PodCliqueSet, scales its parts, and reads how they fare."""

    name = keys.GROVE

    def problems(self, graph: Graph, snapshot: GraphSnapshot) -> list[FieldError]:
        """Constraints are judged when the set is made; afterwards Grove itself tells what became of them. Its
        own admission does not ask about what its operator writes, so its rules are asked here."""
        made = snapshot.workload
        if made is None:
            wrong = topology_rules.on_create(graph, snapshot.context)
            return wrong or list(validation.on_create(self._desired(graph, snapshot), snapshot.facts).errors)
        wanted, stored = self._desired(graph, snapshot), _plain(made)
        if _spec_hash(wanted) == made.metadata.annotations.get(keys.APPLIED):
            return []
        changed = {**wanted, "metadata": stored["metadata"]}  # only its spec is written
        return list(validation.on_update(stored, changed, snapshot.facts).errors)

    def writes(self, graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
        wanted, made = self._desired(graph, snapshot), snapshot.workload
        spec_hash = _spec_hash(wanted)
        metadata = wanted["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), keys.APPLIED: spec_hash}
        if made is None:
            return [Create(target(wanted), with_owner(graph, wanted))]
        if made.metadata.deletion_timestamp is not None:
            return []
        found: list[Intent] = []
        if made.metadata.annotations.get(keys.APPLIED) != spec_hash or not contains(
            wanted["spec"], _plain(made)["spec"]
        ):
            body = {
                "metadata": {"annotations": {keys.APPLIED: spec_hash}},
                "spec": _merge_patch_spec(wanted["spec"]),
            }
            found.append(Patch(target(wanted), body))
        return [*found, *self._scale_writes(graph, snapshot)]

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        clique_or_group = clique_or_group_of(graph, component, snapshot)
        if clique_or_group is None:
            kind = (PodCliqueScalingGroup if component.multinode else PodClique).KIND.name
            words = f"{kind} {naming.component_object(graph, component)} is not there yet"
            return ComponentState(None, "some_resources_are_not_ready", words)
        return _component_state(graph, component, clique_or_group, _generation(component, snapshot))

    def applied(self, graph: Graph, snapshot: GraphSnapshot) -> tuple[AppliedTopology, ...]:
        return (
            podcliqueset.applied(graph, self._render_settings(graph, snapshot)) if snapshot.workload else ()
        )

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
        return restarts.status(graph, snapshot)

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        """Whether the constraints hold, and whatever else Grove says of the set."""
        if snapshot.workload is None:
            return []
        said = snapshot.workload.status.conditions
        told = [
            new_condition(f"grove.io/{each.type}", _holds(each), each.reason, each.message) for each in said
        ]
        if graph.constrained:
            told.append(_levels(find(said, ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)))
        return told

    def _render_settings(self, graph: Graph, snapshot: GraphSnapshot) -> podcliqueset.RenderSettings:
        """The topology of a set that is there stays the one that it was made with, and so does its scheduler,
        whatever has become the default one."""
        made = snapshot.workload
        named = topology_name_of(made.spec.template) if made else ""
        scheduler = named_scheduler(made) if made else snapshot.context.scheduler
        if not named and graph.constrained:
            named = topology_rules.resolve(graph, snapshot.context)
        restart_ids = restarts.restart_ids(graph, snapshot)
        return podcliqueset.RenderSettings(topology=named, scheduler=scheduler, restarts=restart_ids)

    def _desired(self, graph: Graph, snapshot: GraphSnapshot) -> Body:
        """The set with everything filled in."""
        made, secrets = snapshot.workload, snapshot.pull_secrets
        known = {
            each.name: image_pull_secrets.current_secrets_in_set(each, made) for each in graph.components
        }
        fit = {
            each.name: image_pull_secrets.matching_secrets(graph, each, secrets, known[each.name])
            for each in graph.components
        }
        if made is None:
            return self._render(image_pull_secrets.with_pull_secrets(graph, fit), snapshot)
        graph, wanted = self._as_created(image_pull_secrets.with_pull_secrets(graph, known), snapshot, made)
        if fit == known:
            return wanted
        changed = _changed(graph, wanted, made)
        taken = {
            name: image_pull_secrets.select_secrets(
                fit[name], known[name], changes=name in changed, started=name in snapshot.started
            )
            for name in fit
        }
        return (
            wanted
            if taken == known
            else self._render(image_pull_secrets.with_pull_secrets(graph, taken), snapshot)
        )

    def _as_created(self, graph: Graph, snapshot: GraphSnapshot, made: PodCliqueSet) -> tuple[Graph, Body]:
        """One that was made before workers had generations stays as it is until something changes."""
        if not _carries_generations(made):
            untold = replace(graph, ignores_generations=True)
            before = self._render(untold, snapshot)
            if _spec_hash(before) == made.metadata.annotations.get(keys.APPLIED):
                return untold, before
        return graph, self._render(graph, snapshot)

    def _render(self, graph: Graph, snapshot: GraphSnapshot) -> Body:
        """With the counts that it was made with: whoever scales later scales its parts."""
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
    """As a merge patch: what may be there and is not wanted any more is taken away."""
    template = {**dict.fromkeys(_OPTIONAL), **spec["template"]}
    return {"updateStrategy": None, **spec, "template": template}


def _keep_counts(template: Body, old: Body) -> None:
    """Changes the template in place."""
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


def _levels(said: Condition | None) -> Condition:
    if said is None:
        return new_condition(LEVELS, None, "TopologyConditionPending", "Grove has not said yet")
    if said.status == "False":
        return new_condition(LEVELS, True, "AllTopologyLevelsAvailable", said.message)
    if said.reason == TopologyLevelsReason.NOT_FOUND:
        return new_condition(LEVELS, False, "TopologyDefinitionNotFound", said.message)
    if said.status == "True":
        return new_condition(LEVELS, False, "TopologyLevelsUnavailable", said.message)
    return new_condition(LEVELS, None, said.reason, said.message)


def _changed(graph: Graph, wanted: Body, made: PodCliqueSet) -> set[str]:
    """Components whose pods are replaced in any case."""
    stored = {each["name"]: each for each in _plain(made)["spec"]["template"]["cliques"]}
    fresh = {
        each["name"]
        for each in wanted["spec"]["template"]["cliques"]
        if not contains(each, stored.get(each["name"]))
    }
    roles = ("", naming.LEADER, naming.WORKER)
    return {
        each.name for each in graph.components if any(naming.clique(each, role) in fresh for role in roles)
    }


def _carries_generations(workload: PodCliqueSet) -> bool:
    return any(keys.WORKER_HASH in clique.labels for clique in workload.spec.template.cliques)


def _generation(component: GraphComponent, snapshot: GraphSnapshot) -> str:
    """Of the workers that the set is made of."""
    cliques = snapshot.workload.spec.template.cliques if snapshot.workload else ()
    name = naming.clique(component, naming.LEADER if component.multinode else "")
    return next((each.labels.get(keys.WORKER_HASH, "") for each in cliques if each.name == name), "")


def _component_state(
    graph: Graph, component: GraphComponent, clique_or_group: CliqueOrGroup, generation: str
) -> ComponentState:
    said, snapshot = clique_or_group.status, clique_or_group.status.observed_generation
    good = said.ready_replicas if isinstance(said, PodCliqueStatus) else said.available_replicas
    status = ComponentStatus(
        component_kind=clique_or_group.KIND.name,
        component_names=(clique_or_group.metadata.name,),
        runtime_namespace=runtime_namespace(graph, component, generation),
        replicas=said.replicas,
        updated_replicas=said.updated_replicas,
        ready_replicas=None if component.multinode else good,
        available_replicas=good if component.multinode else None,
        scheduled_replicas=said.scheduled_replicas if snapshot else None,
    )
    current = 0 < clique_or_group.metadata.generation <= snapshot
    return _state_from_counts(
        status, clique_or_group.spec.replicas, good, current=current, short=_lacks_nodes(said)
    )


def _lacks_nodes(said: PodCliqueStatus | PodCliqueScalingGroupStatus) -> bool:
    """Whether pods of a clique have no node; a group tells by its counts alone."""
    if not isinstance(said, PodCliqueStatus):
        return False
    scheduled = find(said.conditions, ConditionType.CLIQUE_SCHEDULED)
    return said.schedule_gated_replicas > 0 or (
        scheduled is not None
        and scheduled.status == "False"
        and scheduled.reason == CliqueReason.INSUFFICIENT_SCHEDULED_PODS
    )


def _state_from_counts(
    status: ComponentStatus, desired: int, good: int, *, current: bool, short: bool
) -> ComponentState:
    """The first of these that is true is why."""
    counts = f"{good} of {desired} ready"
    if not current:
        return ComponentState(status, "some_resources_are_not_ready", "the latest change is not acted on yet")
    if desired == 0 or status.replicas == status.updated_replicas == good == desired:
        return ComponentState(status)
    if short or 0 < (status.scheduled_replicas or 0) < desired:
        return ComponentState(
            status, "insufficient_capacity", f"{counts}, {status.scheduled_replicas} scheduled"
        )
    if status.updated_replicas != desired:
        return ComponentState(status, "updating", f"{counts}, {status.updated_replicas} updated")
    if status.replicas != desired:
        return ComponentState(status, "updating", f"{counts}, {status.replicas} there")
    return ComponentState(status, "pods_not_ready", counts)
