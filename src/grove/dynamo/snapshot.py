"""All that is known about one deployment at a moment, and what a backend makes of it."""

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
"""What runs a component under Grove."""


class StoredGraph(Wire, frozen=True):
    """A DynamoGraphDeployment as it is stored. The spec is raw, so that no field of it is overlooked."""

    metadata: ObjectMeta
    spec: object = None
    status: GraphStatus = GraphStatus()


class ChildObject(Wire, frozen=True):
    """Anything that is made for a deployment, as far as it can be wrong."""

    metadata: ObjectMeta
    spec: object = None
    status: object = None
    data: object = None
    rules: object = None
    role_ref: object = None
    subjects: object = None


class GraphSnapshot(Struct, frozen=True):
    """A deployment and what is there of it."""

    stored: StoredGraph
    context: GraphContext = GraphContext()
    facts: Facts = Facts()
    """What Grove's own rules are told."""
    workload: PodCliqueSet | None = None
    cliques: Mapping[str, PodClique] = field(default_factory=dict)
    groups: Mapping[str, PodCliqueScalingGroup] = field(default_factory=dict)
    children: Mapping[tuple[str, str], ChildObject] = field(default_factory=dict)
    """By kind and name."""
    pull_secrets: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    """Secrets for pulling images in its namespace: the registries of each, by name; None if nobody knows."""
    started: frozenset[str] = frozenset()
    """Components of its set that have started, as their latest template is; not asked unless there is a new
    Secret for one."""
    ssh_key: tuple[str, str] | None = None
    """A fresh pair, private and public, if one is needed."""
    last_error: str = ""
    """What could not be done the last time."""


class ComponentState(Struct, frozen=True):
    """How a component fares: `why` and `words` are empty if it is ready."""

    status: ComponentStatus | None
    reason: str = ""
    message: str = ""


def clique_or_group_of(
    graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
) -> CliqueOrGroup | None:
    """The PodClique or PodCliqueScalingGroup of a component, if it is there."""
    name = naming.component_object(graph, component)
    return snapshot.groups.get(name) if component.multinode else snapshot.cliques.get(name)


class GraphBackend(Protocol):
    """One way of running a deployment."""

    name: str
    """As `nvidia.com/workload-provider` calls it."""

    def problems(self, graph: Graph, snapshot: GraphSnapshot) -> list[FieldError]:
        """What keeps the deployment from being made."""
        ...

    def writes(self, graph: Graph, snapshot: GraphSnapshot) -> list[Intent]:
        """What makes it, or brings it in order."""
        ...

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        """How a component fares."""
        ...

    def applied(self, graph: Graph, snapshot: GraphSnapshot) -> tuple[AppliedTopology, ...]:
        """The constraints that are in force."""
        ...

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
        """How far a restart has come."""
        ...

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        """What else there is to say, without dates."""
        ...


def raw(stored: StoredGraph) -> dict[str, Any]:
    """The deployment as the rules read it."""
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
