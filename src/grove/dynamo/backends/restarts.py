"""Restarts: a new `spec.restart.id` replaces the pods of all components, sequentially or in parallel. The id
is an annotation of the pod templates, so that the operator replaces the pods by a rollout."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys, naming
from grove.dynamo.api.graph_deployment import PARALLEL, Restart
from grove.dynamo.api.status import RestartStatus
from grove.dynamo.graph import Graph, GraphComponent
from grove.dynamo.render.addressing import Role
from grove.dynamo.snapshot import GraphSnapshot, clique_or_group_of
from grove.plan.rollout.progress import is_in_progress


def restart_ids(graph: Graph, snapshot: GraphSnapshot) -> dict[str, str]:
    """The restart id of each component's template, by name. A component that is not due yet keeps its
    previous id. An id stays after `spec.restart` is removed: removing it would change the template again."""
    current_ids = _current_ids(graph, snapshot.workload)
    if snapshot.workload is None or graph.restart is None:
        return current_ids
    wanted = graph.restart.id
    if _parallel(graph.restart):
        return dict.fromkeys((each.name for each in graph.components), wanted)
    for component in _order(graph):
        if current_ids.get(component.name) != wanted:
            return {**current_ids, component.name: wanted}
        if not _done(graph, component, snapshot):
            break
    return current_ids


def status(graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
    """The progress of the restart."""
    if graph.restart is None or snapshot.workload is None:
        return None
    current_ids = _current_ids(graph, snapshot.workload)
    behind = [
        each.name
        for each in graph.components
        if current_ids.get(each.name) != graph.restart.id or not _done(graph, each, snapshot)
    ]
    in_progress = tuple(name for name in behind if current_ids.get(name) == graph.restart.id)
    return RestartStatus(graph.restart.id, "Restarting" if behind else "Completed", in_progress)


def _parallel(restart: Restart) -> bool:
    return restart.strategy is not None and restart.strategy.type == PARALLEL


def _order(graph: Graph) -> list[GraphComponent]:
    by_name = {each.name: each for each in graph.components}
    strategy = graph.restart.strategy if graph.restart else None
    names = strategy.order if strategy and strategy.order else sorted(by_name)
    return [by_name[name] for name in names if name in by_name]


def _current_ids(graph: Graph, workload: PodCliqueSet | None) -> dict[str, str]:
    if workload is None:
        return {}
    cliques: Mapping[str, str] = {
        clique.name: clique.annotations[keys.RESTARTED]
        for clique in workload.spec.template.cliques
        if keys.RESTARTED in clique.annotations
    }
    found = {}
    for component in graph.components:
        name = naming.clique(component, Role.LEADER if component.multinode else Role.SINGLE)
        if name in cliques:
            found[component.name] = cliques[name]
    return found


def _done(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> bool:
    """Whether all pods of the component are of the current generation of the set."""
    workload, clique_or_group = snapshot.workload, clique_or_group_of(graph, component, snapshot)
    if workload is None or clique_or_group is None:
        return False
    status = workload.status
    if status.observed_generation != workload.metadata.generation or is_in_progress(status.update_progress):
        return False
    return clique_or_group.status.current_pod_clique_set_generation_hash == status.current_generation_hash
