"""The version-independent form of a DynamoGraphDeployment, which rules and rendering work on."""

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
EPP = "epp"
"""The type of an endpoint picker."""
MAIN = "main"


def mapping(value: object) -> Body:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


class CompilationCacheMount(Struct, frozen=True):
    """A PersistentVolumeClaim that keeps the output of compilers."""

    claim: str
    path: str = ""


class PickerConfig(Struct, frozen=True):
    """The configuration of an endpoint picker: inline, or in a ConfigMap of the user."""

    config: Body | None = None
    config_map: str | None = None
    key: str = ""
    """The key in the ConfigMap; empty: the default."""


class VolumeClaim(Struct, frozen=True):
    """A PersistentVolumeClaim that the graph needs."""

    name: str
    create: bool
    body: Body


class GraphComponent(Struct, frozen=True):
    """A component of the graph."""

    path: str
    """Its field path in the object, for errors and patches."""
    name: str
    type: str = ""
    replicas: int = 1
    min_available: int = 1
    nodes: int = 1
    """Nodes per replica."""
    main: Body = {}
    """The main container as the user wrote it."""
    sidecars: tuple[Body, ...] = ()
    pod: Body = {}
    """The rest of the pod spec as the user wrote it."""
    pod_labels: Mapping[str, str] = {}
    pod_annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    """Labels of the objects created for it, including pods; labels of its pods take precedence."""
    annotations: Mapping[str, str] = {}
    claimed_gpus: int = 0
    """GPUs per pod that it gets by resource claims, as far as known."""
    has_scaling_adapter: bool = False
    """Whether autoscalers scale it, through a DynamoGraphDeploymentScalingAdapter."""
    frontend: str | None = None
    """The name of the sidecar that is a frontend."""
    version: str = ""
    """The version of Dynamo in the image, if the image tag does not contain it."""
    shared_memory: str = ""
    """Size of `/dev/shm`; empty: the default."""
    cache: CompilationCacheMount | None = None
    picker: PickerConfig | None = None
    """The configuration of an endpoint picker, if it is written."""
    model: str = ""
    everywhere: bool = False
    """Whether it is discovered in the Dynamo namespace that all graphs share."""
    domain: str = ""
    """The topology domain that it must fit into."""

    @property
    def lower(self) -> str:
        """Its name in lower case, for names of objects."""
        return self.name.lower()

    @property
    def multinode(self) -> bool:
        """Whether a replica spans several nodes."""
        return self.nodes > 1

    @property
    def runs_engine(self) -> bool:
        """Whether it runs an inference engine."""
        return self.type in WORKERS


class GraphTopology(Struct, frozen=True):
    """The topology constraint of the whole graph."""

    name: str = ""
    domain: str = ""


class Graph(Struct, frozen=True):
    """A DynamoGraphDeployment."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    components: tuple[GraphComponent, ...] = ()
    own_labels: Mapping[str, str] = {}
    """Labels of its metadata."""
    own_annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    """Labels of all objects created for it."""
    annotations: Mapping[str, str] = {}
    env: tuple[Body, ...] = ()
    framework: str = ""
    priority_class: str = ""
    topology: GraphTopology = GraphTopology()
    claims: tuple[VolumeClaim, ...] = ()
    restart: Restart | None = None
    ignores_generations: bool = False
    """Whether workers of old and new templates share one Dynamo namespace."""

    @property
    def has_picker(self) -> bool:
        """Whether an endpoint picker chooses the workers of requests."""
        return any(each.type == EPP for each in self.components)

    @property
    def constrained(self) -> bool:
        """Whether the graph or any component has a topology constraint."""
        return bool(self.topology.domain) or any(each.domain for each in self.components)

    @property
    def discovered_by_kubernetes(self) -> bool:
        """Whether components discover each other through the API server; else through etcd."""
        return self.own_annotations.get(keys.DISCOVERY_BACKEND, keys.KUBERNETES) != keys.ETCD

    def dynamo_namespace(self, component: GraphComponent) -> str:
        """The Dynamo namespace in which a component is discovered."""
        own = f"{self.namespace}-{self.name.replace('.', '-')}"
        return "dynamo" if component.everywhere else own
