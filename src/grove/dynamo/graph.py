"""A deployment in one shape, whichever version it was written in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from grove.dynamo import keys
from grove.dynamo.api.graph_deployment import Restart

Body = dict[str, Any]

WORKERS = frozenset({"worker", "prefill", "decode"})
FRONTEND = "frontend"
PLANNER = "planner"
MAIN = "main"


class CompilationCacheMount(Struct, frozen=True):
    """A claim that keeps what compilers made."""

    claim: str
    path: str = ""


class VolumeClaim(Struct, frozen=True):
    """A PersistentVolumeClaim that the deployment needs."""

    name: str
    create: bool
    body: Body


class GraphComponent(Struct, frozen=True):
    """A part of the graph."""

    path: str
    """Where it is written."""
    name: str
    type: str = ""
    replicas: int = 1
    min_available: int = 1
    nodes: int = 1
    """That one replica spans."""
    main: Body = {}
    """The main container as the user wrote it."""
    sidecars: tuple[Body, ...] = ()
    pod: Body = {}
    """The rest of the pod spec as the user wrote it."""
    pod_labels: Mapping[str, str] = {}
    pod_annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    """Of what is made for it, pods included; weaker than those of its pods."""
    annotations: Mapping[str, str] = {}
    claimed_gpus: int = 0
    """GPUs by claims, as far as they are known."""
    pull_secrets: tuple[str, ...] = ()
    """Secrets that were found for pulling its images, beside those that the user names."""
    has_scaling_adapter: bool = False
    """Whether autoscalers scale it, through an adapter."""
    frontend: str | None = None
    """Which of the sidecars is a frontend."""
    version: str = ""
    """Of Dynamo in the image, where its tag does not tell."""
    shared_memory: str = ""
    """Empty: as much as is usual."""
    cache: CompilationCacheMount | None = None
    model: str = ""
    everywhere: bool = False
    """Found in the namespace of all deployments."""
    domain: str = ""
    """That it must fit into."""

    @property
    def lower(self) -> str:
        """Its name, in names of other things."""
        return self.name.lower()

    @property
    def multinode(self) -> bool:
        """Whether a replica spans several nodes."""
        return self.nodes > 1

    @property
    def runs_engine(self) -> bool:
        """Whether it runs an engine."""
        return self.type in WORKERS


class GraphTopology(Struct, frozen=True):
    """What is said on the deployment as a whole."""

    name: str = ""
    domain: str = ""


class Graph(Struct, frozen=True):
    """A deployment."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    components: tuple[GraphComponent, ...] = ()
    own_labels: Mapping[str, str] = {}
    """Of its metadata."""
    own_annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    """For all that is made."""
    annotations: Mapping[str, str] = {}
    env: tuple[Body, ...] = ()
    framework: str = ""
    priority_class: str = ""
    topology: GraphTopology = GraphTopology()
    claims: tuple[VolumeClaim, ...] = ()
    restart: Restart | None = None
    ignores_generations: bool = False
    """Whether generations of its workers are not told from each other."""

    @property
    def constrained(self) -> bool:
        """Whether anything is constrained."""
        return bool(self.topology.domain) or any(each.domain for each in self.components)

    @property
    def discovered_by_kubernetes(self) -> bool:
        """Whether components find each other through the API server; else through etcd."""
        return self.own_annotations.get(keys.DISCOVERY_BACKEND, keys.KUBERNETES) != keys.ETCD

    def dynamo_namespace(self, component: GraphComponent) -> str:
        """The namespace in which Dynamo finds a component."""
        own = f"{self.namespace}-{self.name.replace('.', '-')}"
        return "dynamo" if component.everywhere else own
