"""Grove as the backend: one PodCliqueSet for the deployment."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from msgspec.structs import replace

from grove.api.cliques import PodClique, PodCliqueStatus
from grove.api.conditions import CliqueReason, ConditionType, TopologyLevelsReason
from grove.api.groups import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from grove.api.intents import Create, Intent, Patch, Target
from grove.api.meta import Condition
from grove.api.sets import PodCliqueSet
from grove.dynamo import keys, naming, pulling, restarts, sets, topology
from grove.dynamo.generations import runtime_namespace
from grove.dynamo.graph import Body, Component, Graph
from grove.dynamo.objects import digest, owned, target, within
from grove.dynamo.seen import Runner, Seen, Standing, runner_of
from grove.dynamo.told import LEVELS, AppliedTopology, ComponentStatus, RestartStatus
from grove.plan.compose import named_scheduler
from grove.plan.facts import fact, find
from grove.rules import fabric, validate
from grove.rules.defaults import default_set
from grove.rules.model import FieldError
from grove.topology.constraints import name_of

_OPTIONAL = ("priorityClassName", "podCliqueScalingGroups", "topologyConstraint")


class Grove:
    """Makes a PodCliqueSet, scales its parts, and reads how they fare."""

    name = keys.GROVE

    def problems(self, graph: Graph, seen: Seen) -> list[FieldError]:
        """Constraints are judged when the set is made; afterwards Grove itself tells what became of them. Its
        own admission does not ask about what its operator writes, so its rules are asked here."""
        made = seen.workload
        if made is None:
            wrong = topology.on_create(graph, seen.surroundings)
            return wrong or list(validate.on_create(self._wanted(graph, seen), seen.facts).errors)
        wanted, stored = self._wanted(graph, seen), _plain(made)
        if _edition(wanted) == made.metadata.annotations.get(keys.APPLIED):
            return []
        changed = {**wanted, "metadata": stored["metadata"]}  # only its spec is written
        return list(validate.on_update(stored, changed, seen.facts).errors)

    def writes(self, graph: Graph, seen: Seen) -> list[Intent]:
        wanted, made = self._wanted(graph, seen), seen.workload
        edition = _edition(wanted)
        metadata = wanted["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), keys.APPLIED: edition}
        if made is None:
            return [Create(target(wanted), owned(graph, wanted))]
        if made.metadata.deletion_timestamp is not None:
            return []
        found: list[Intent] = []
        if made.metadata.annotations.get(keys.APPLIED) != edition or not within(
            wanted["spec"], _plain(made)["spec"]
        ):
            body = {"metadata": {"annotations": {keys.APPLIED: edition}}, "spec": _complete(wanted["spec"])}
            found.append(Patch(target(wanted), body))
        return [*found, *self._scaled(graph, seen)]

    def standing(self, graph: Graph, component: Component, seen: Seen) -> Standing:
        runner = runner_of(graph, component, seen)
        if runner is None:
            kind = (PodCliqueScalingGroup if component.multinode else PodClique).KIND.name
            words = f"{kind} {naming.part(graph, component)} is not there yet"
            return Standing(None, "some_resources_are_not_ready", words)
        return _standing(graph, component, runner, _generation(component, seen))

    def applied(self, graph: Graph, seen: Seen) -> tuple[AppliedTopology, ...]:
        return sets.applied(graph, self._setting(graph, seen)) if seen.workload else ()

    def restart(self, graph: Graph, seen: Seen) -> RestartStatus | None:
        return restarts.status(graph, seen)

    def conditions(self, graph: Graph, seen: Seen) -> list[Condition]:
        """Whether the constraints hold, and whatever else Grove says of the set."""
        if seen.workload is None:
            return []
        said = seen.workload.status.conditions
        told = [fact(f"grove.io/{each.type}", _holds(each), each.reason, each.message) for each in said]
        if graph.constrained:
            told.append(_levels(find(said, ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE)))
        return told

    def _setting(self, graph: Graph, seen: Seen) -> sets.Setting:
        """The topology of a set that is there stays the one that it was made with, and so does its scheduler,
        whatever has become the default one."""
        made = seen.workload
        named = name_of(made.spec.template) if made else ""
        scheduler = named_scheduler(made) if made else seen.surroundings.scheduler
        if not named and graph.constrained:
            named = topology.resolve(graph, seen.surroundings)
        reached = restarts.reached(graph, seen)
        return sets.Setting(topology=named, scheduler=scheduler, restarts=reached)

    def _wanted(self, graph: Graph, seen: Seen) -> Body:
        """The set with everything filled in."""
        made, secrets = seen.workload, seen.pull_secrets
        known = {each.name: pulling.given_in_set(each, made) for each in graph.components}
        fit = {each.name: pulling.found(graph, each, secrets, known[each.name]) for each in graph.components}
        if made is None:
            return self._rendered(pulling.pulled(graph, fit), seen)
        graph, wanted = self._as_made(pulling.pulled(graph, known), seen, made)
        if fit == known:
            return wanted
        changed = _changed(graph, wanted, made)
        taken = {
            name: pulling.chosen(
                fit[name], known[name], changes=name in changed, started=name in seen.started
            )
            for name in fit
        }
        return wanted if taken == known else self._rendered(pulling.pulled(graph, taken), seen)

    def _as_made(self, graph: Graph, seen: Seen, made: PodCliqueSet) -> tuple[Graph, Body]:
        """One that was made before workers had generations stays as it is until something changes."""
        if not _carries_generations(made):
            untold = replace(graph, untold=True)
            before = self._rendered(untold, seen)
            if _edition(before) == made.metadata.annotations.get(keys.APPLIED):
                return untold, before
        return graph, self._rendered(graph, seen)

    def _rendered(self, graph: Graph, seen: Seen) -> Body:
        """With the counts that it was made with: whoever scales later scales its parts."""
        old = _plain(seen.workload) if seen.workload else None
        wanted = sets.workload(graph, self._setting(graph, seen))
        if old is not None:
            _keep_counts(wanted["spec"]["template"], old["spec"]["template"])
        filled = default_set(wanted, old)
        return fabric.marked(filled, seen.facts) if old is None else filled

    def _scaled(self, graph: Graph, seen: Seen) -> list[Intent]:
        found: list[Intent] = []
        for component in graph.components:
            runner = runner_of(graph, component, seen)
            if runner is None or runner.metadata.deletion_timestamp is not None:
                continue
            if runner.spec.replicas != component.replicas:
                about = Target(runner.api_version, runner.kind, runner.metadata.name, graph.namespace)
                body = {"spec": {"replicas": component.replicas}}
                found.append(Patch(about, body, subresource="scale"))
        return found


def _plain(value: Any) -> Body:
    found: Body = msgspec.json.decode(msgspec.json.encode(value))
    return found


def _edition(wanted: Body) -> str:
    return digest(wanted["spec"])


def _complete(spec: Body) -> Body:
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
        return fact(LEVELS, None, "TopologyConditionPending", "Grove has not said yet")
    if said.status == "False":
        return fact(LEVELS, True, "AllTopologyLevelsAvailable", said.message)
    if said.reason == TopologyLevelsReason.NOT_FOUND:
        return fact(LEVELS, False, "TopologyDefinitionNotFound", said.message)
    if said.status == "True":
        return fact(LEVELS, False, "TopologyLevelsUnavailable", said.message)
    return fact(LEVELS, None, said.reason, said.message)


def _changed(graph: Graph, wanted: Body, made: PodCliqueSet) -> set[str]:
    """Components whose pods are replaced in any case."""
    stored = {each["name"]: each for each in _plain(made)["spec"]["template"]["cliques"]}
    fresh = {
        each["name"]
        for each in wanted["spec"]["template"]["cliques"]
        if not within(each, stored.get(each["name"]))
    }
    roles = ("", naming.LEADER, naming.WORKER)
    return {
        each.name for each in graph.components if any(naming.clique(each, role) in fresh for role in roles)
    }


def _carries_generations(workload: PodCliqueSet) -> bool:
    return any(keys.WORKER_HASH in clique.labels for clique in workload.spec.template.cliques)


def _generation(component: Component, seen: Seen) -> str:
    """Of the workers that the set is made of."""
    cliques = seen.workload.spec.template.cliques if seen.workload else ()
    name = naming.clique(component, naming.LEADER if component.multinode else "")
    return next((each.labels.get(keys.WORKER_HASH, "") for each in cliques if each.name == name), "")


def _standing(graph: Graph, component: Component, runner: Runner, generation: str) -> Standing:
    said, seen = runner.status, runner.status.observed_generation
    good = said.ready_replicas if isinstance(said, PodCliqueStatus) else said.available_replicas
    status = ComponentStatus(
        component_kind=runner.KIND.name,
        component_names=(runner.metadata.name,),
        runtime_namespace=runtime_namespace(graph, component, generation),
        replicas=said.replicas,
        updated_replicas=said.updated_replicas,
        ready_replicas=None if component.multinode else good,
        available_replicas=good if component.multinode else None,
        scheduled_replicas=said.scheduled_replicas if seen else None,
    )
    current = 0 < runner.metadata.generation <= seen
    return _judged(status, runner.spec.replicas, good, current=current, short=_short(said))


def _short(said: PodCliqueStatus | PodCliqueScalingGroupStatus) -> bool:
    """Whether pods of a clique have no node; a group tells by its counts alone."""
    if not isinstance(said, PodCliqueStatus):
        return False
    scheduled = find(said.conditions, ConditionType.CLIQUE_SCHEDULED)
    return said.schedule_gated_replicas > 0 or (
        scheduled is not None
        and scheduled.status == "False"
        and scheduled.reason == CliqueReason.INSUFFICIENT_SCHEDULED_PODS
    )


def _judged(status: ComponentStatus, desired: int, good: int, *, current: bool, short: bool) -> Standing:
    """The first of these that is true is why."""
    counts = f"{good} of {desired} ready"
    if not current:
        return Standing(status, "some_resources_are_not_ready", "the latest change is not acted on yet")
    if desired == 0 or status.replicas == status.updated_replicas == good == desired:
        return Standing(status)
    if short or 0 < (status.scheduled_replicas or 0) < desired:
        return Standing(status, "insufficient_capacity", f"{counts}, {status.scheduled_replicas} scheduled")
    if status.updated_replicas != desired:
        return Standing(status, "updating", f"{counts}, {status.updated_replicas} updated")
    if status.replicas != desired:
        return Standing(status, "updating", f"{counts}, {status.replicas} there")
    return Standing(status, "pods_not_ready", counts)
