"""The input of the planner: one graph with everything observed for it, and the interface of backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from grove.api.field_errors import FieldError
from grove.api.intents import Intent
from grove.api.meta import Condition, ObjectMeta
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.wire import Wire
from grove.dynamo import naming
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.kueue_workload import KueueWorkload
from grove.dynamo.api.status import AppliedTopology, ComponentStatus, GraphStatus, RestartStatus
from grove.dynamo.context import GraphContext
from grove.dynamo.decode.normalize import ParsedGraph, parse
from grove.dynamo.graph import Graph, GraphComponent
from grove.dynamo.render import auxiliary_objects
from grove.dynamo.render.auxiliary_objects import AuxiliaryObjects
from grove.rules.decode import ObjectFormatError
from grove.rules.model import Facts

CliqueOrGroup = PodClique | PodCliqueScalingGroup
"""The object of a component with the Grove backend."""


class StoredGraph(Wire, frozen=True):
    """A DynamoGraphDeployment as it is stored. The spec is raw, so that unknown fields are detected."""

    metadata: ObjectMeta
    spec: object = None
    status: GraphStatus = GraphStatus()
    api_version: str = DynamoGraphDeployment.KIND.api_version
    kind: str = DynamoGraphDeployment.KIND.name


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
    """A graph with the objects that exist for it; `snapshot_of` parses it."""

    stored: StoredGraph | None
    """None: the graph is gone, or cannot be read; `workload` is the set that a graph left when it was
    deleted."""
    parsed: ParsedGraph | None = None
    """None if it cannot be decoded."""
    decode_errors: tuple[FieldError, ...] = ()
    """Why it cannot be decoded."""
    auxiliary: AuxiliaryObjects = AuxiliaryObjects()
    """The auxiliary objects that it should have."""
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
    queued: Mapping[str, tuple[KueueWorkload, ...]] = field(default_factory=dict)
    """By component, Kueue's Workloads of its pods, where Kueue admits them."""
    ssh_key: tuple[str, str] | None = None
    """A new key pair, private and public, if one is needed."""


class ComponentState(Struct, frozen=True):
    """The state of a component: `reason` and `message` are empty if it is ready."""

    status: ComponentStatus | None
    reason: str = ""
    message: str = ""


class GraphReason(Struct, frozen=True):
    """Why pods of a graph wait: what was found, with the remedy."""

    code: str
    message: str


def clique_or_group_of(
    graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
) -> CliqueOrGroup | None:
    """The PodClique or PodCliqueScalingGroup of a component, if it exists."""
    name = naming.component_object(graph, component)
    return snapshot.groups.get(name) if component.multinode else snapshot.cliques.get(name)


class WorkloadPlan(Struct, frozen=True):
    """The workloads of a graph, rendered and compared with those that exist."""

    errors: tuple[FieldError, ...] = ()
    """Why the workloads cannot be created or updated; without them, the other fields are filled in."""
    writes: tuple[Intent, ...] = ()
    """The writes that create or update the workloads."""
    applied: tuple[AppliedTopology, ...] = ()
    """The topology constraints that the workloads carry."""


class GraphBackend(Protocol):
    """Renders a graph into workloads of one kind, and reads their state."""

    name: str
    """The value of the annotation `nvidia.com/workload-provider`."""

    def plan_workloads(self, graph: Graph, snapshot: GraphSnapshot) -> WorkloadPlan:
        """Render the workloads, validate them, and compare them with those that exist."""
        ...

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        """The state of a component."""
        ...

    def reasons(self, graph: Graph, snapshot: GraphSnapshot) -> list[GraphReason]:
        """Why pods wait, as far as it is known: one reason for each code, the most important first."""
        ...

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:
        """The progress of a restart."""
        ...

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        """Further conditions, without transition times."""
        ...


def snapshot_of(stored: StoredGraph, context: GraphContext, facts: Facts) -> GraphSnapshot:
    """The snapshot of a graph, without the objects that exist for it: the graph is parsed here, once for a
    pass."""
    snapshot = GraphSnapshot(stored, context=context, facts=facts)
    try:
        parsed = parse(_body(stored))
    except ObjectFormatError as format_error:
        return replace(snapshot, decode_errors=tuple(format_error.errors))
    return replace(snapshot, parsed=parsed, auxiliary=auxiliary_objects.render(parsed.graph))


def _body(stored: StoredGraph) -> dict[str, Any]:
    """The graph as the JSON object that is decoded."""
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
