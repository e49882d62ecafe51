"""The input of the planner: one graph with everything observed for it, and the interface of backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from grove.api.intents import Intent
from grove.api.meta import Condition, ObjectMeta
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.wire import Wire
from grove.dynamo import naming
from grove.dynamo.api.status import AppliedTopology, ComponentStatus, GraphStatus, RestartStatus
from grove.dynamo.context import GraphContext
from grove.dynamo.graph import Graph, GraphComponent
from grove.rules.model import Facts, FieldError

CliqueOrGroup = PodClique | PodCliqueScalingGroup
"""The object of a component with the Grove backend."""


class StoredGraph(Wire, frozen=True):
    """A DynamoGraphDeployment as it is stored. The spec is raw, so that unknown fields are detected."""

    metadata: ObjectMeta
    spec: object = None
    status: GraphStatus = GraphStatus()


class ChildObject(Wire, frozen=True):
    """Any object that is created for a graph, with the fields that are compared."""

    metadata: ObjectMeta
    spec: object = None
    status: object = None
    data: object = None
    rules: object = None
    role_ref: object = None
    subjects: object = None


class GraphSnapshot(Struct, frozen=True):
    """A graph with the objects that exist for it."""

    stored: StoredGraph
    context: GraphContext = GraphContext()
    facts: Facts = Facts()
    """Facts for the admission rules of PodCliqueSets."""
    workload: PodCliqueSet | None = None
    cliques: Mapping[str, PodClique] = field(default_factory=dict)
    groups: Mapping[str, PodCliqueScalingGroup] = field(default_factory=dict)
    children: Mapping[tuple[str, str], ChildObject] = field(default_factory=dict)
    """By kind and name."""
    pull_secrets: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    """Image pull Secrets of its namespace: the registries of each, by name; None if not known."""
    started: frozenset[str] = frozenset()
    """Components with started pods of the latest template; only filled in if there is a new pull Secret."""
    ssh_key: tuple[str, str] | None = None
    """A new key pair, private and public, if one is needed."""
    last_error: str = ""
    """The error of the previous reconcile, if it failed."""


class ComponentState(Struct, frozen=True):
    """The state of a component: `reason` and `message` are empty if it is ready."""

    status: ComponentStatus | None
    reason: str = ""
    message: str = ""


def clique_or_group_of(
    graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
) -> CliqueOrGroup | None:
    """The PodClique or PodCliqueScalingGroup of a component, if it exists."""
    name = naming.component_object(graph, component)
    return snapshot.groups.get(name) if component.multinode else snapshot.cliques.get(name)


class GraphBackend(Protocol):
    """Renders a graph into workloads of one kind, and reads their state."""

    name: str
    """The value of the annotation `nvidia.com/workload-provider`."""

    def problems(self, graph: Graph, snapshot: GraphSnapshot) -> list[FieldError]:
        """Errors that keep the workloads from being created or updated."""
        ...

    def writes(self, graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
        """The writes that create or update the workloads."""
        ...

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        """The state of a component."""
        ...

    def applied(self, graph: Graph, snapshot: GraphSnapshot) -> tuple[AppliedTopology, ...]:
        """The topology constraints that the workloads carry."""
        ...

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
        """The progress of a restart."""
        ...

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        """Further conditions, without transition times."""
        ...


def raw(stored: StoredGraph) -> dict[str, Any]:
    """The graph as the object that the rules decode."""
    meta = stored.metadata
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "generation": meta.generation,
        "labels": dict(meta.labels),
        "annotations": dict(meta.annotations),
    }
    return {"metadata": metadata, "spec": stored.spec}
