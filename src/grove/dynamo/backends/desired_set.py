"""The PodCliqueSet that a graph should have: rendered, with defaults and discovered image pull Secrets."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys, naming
from grove.dynamo.admission import topology_rules
from grove.dynamo.backends import restarts
from grove.dynamo.backends.object_writes import contains, digest
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import podcliqueset
from grove.dynamo.render.image_pull_secrets import (
    Names,
    current_secrets_in_set,
    matching_secrets,
    select_secrets,
    set_pull_secrets,
)
from grove.dynamo.render.podcliqueset import RenderSettings
from grove.dynamo.snapshot import GraphSnapshot
from grove.plan.desired.objects import named_scheduler
from grove.rules.fabric import domains
from grove.rules.podcliqueset.defaults import default_set
from grove.topology.constraints import topology_name_of

SecretsByComponent = Mapping[str, Names]


class DesiredSet(Struct, frozen=True):
    """The desired set, and the settings that it was rendered with."""

    body: Body
    settings: RenderSettings

    @property
    def spec_hash(self) -> str:
        """A hash of its spec, which the set carries as an annotation."""
        return digest(self.body["spec"])


def new_set(graph: Graph, snapshot: GraphSnapshot) -> DesiredSet:
    """The set of a graph that has none yet."""
    settings = _render_settings(graph, snapshot)
    secrets = {each.name: matching_secrets(graph, each, snapshot.pull_secrets) for each in graph.components}
    wanted = domains.with_auto_annotation(_rendered(graph, settings, secrets), snapshot.facts)
    return DesiredSet(wanted, settings)


def updated_set(graph: Graph, snapshot: GraphSnapshot, existing: PodCliqueSet, stored: Body) -> DesiredSet:
    """The set of a graph that has one; `stored` is the existing set as JSON. An update keeps the replicas
    that the set was created with: cliques and groups are scaled."""
    settings = _render_settings(graph, snapshot)
    known = {each.name: current_secrets_in_set(each, existing) for each in graph.components}
    wanted = _rendered_as_created(graph, settings, known, existing, stored)
    fit = {
        each.name: matching_secrets(graph, each, snapshot.pull_secrets, known[each.name])
        for each in graph.components
    }
    if fit != known:
        changed = _changed_components(graph, wanted, stored)
        for component in graph.components:
            name = component.name
            started = name in snapshot.started
            selected = select_secrets(fit[name], known[name], changes=name in changed, started=started)
            _set_pull_secrets(wanted, component, selected)
    return DesiredSet(wanted, settings)


def _render_settings(graph: Graph, snapshot: GraphSnapshot) -> RenderSettings:
    """An existing set keeps its topology and its scheduler, even if the defaults have changed."""
    existing = snapshot.workload
    named = topology_name_of(existing.spec.template) if existing else ""
    scheduler = named_scheduler(existing) if existing else snapshot.context.scheduler
    if not named and graph.constrained:
        named = topology_rules.resolve(graph, snapshot.context)
    restart_ids = restarts.restart_ids(graph, snapshot)
    return RenderSettings(topology=named, scheduler=scheduler, restarts=restart_ids)


def _rendered_as_created(
    graph: Graph, settings: RenderSettings, secrets: SecretsByComponent, existing: PodCliqueSet, stored: Body
) -> Body:
    """A set that was created without worker generations gets none before something else changes, so that an
    upgrade replaces no pods."""
    if not any(keys.WORKER_HASH in clique.labels for clique in existing.spec.template.cliques):
        before = _rendered(replace(graph, ignores_generations=True), settings, secrets, stored)
        if digest(before["spec"]) == existing.metadata.annotations.get(keys.APPLIED):
            return before
    return _rendered(graph, settings, secrets, stored)


def _rendered(
    graph: Graph, settings: RenderSettings, secrets: SecretsByComponent, stored: Body | None = None
) -> Body:
    wanted = podcliqueset.workload(graph, settings)
    if stored is not None:
        _keep_counts(wanted["spec"]["template"], stored["spec"]["template"])
    wanted = default_set(wanted, stored)
    for component in graph.components:
        _set_pull_secrets(wanted, component, secrets[component.name])
    return wanted


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


def _set_pull_secrets(wanted: Body, component: GraphComponent, discovered: Names) -> None:
    names = _clique_names(component)
    for clique in wanted["spec"]["template"]["cliques"]:
        if clique["name"] in names:
            set_pull_secrets(clique["spec"]["podSpec"], component, discovered)


def _changed_components(graph: Graph, wanted: Body, stored: Body) -> set[str]:
    """Components whose pods are replaced anyway, since their template changes."""
    old = {each["name"]: each for each in stored["spec"]["template"]["cliques"]}
    changed = {
        each["name"]
        for each in wanted["spec"]["template"]["cliques"]
        if not contains(each, old.get(each["name"]))
    }
    return {each.name for each in graph.components if not changed.isdisjoint(_clique_names(each))}


def _clique_names(component: GraphComponent) -> tuple[str, ...]:
    roles = (naming.LEADER, naming.WORKER) if component.multinode else ("",)
    return tuple(naming.clique(component, role) for role in roles)
