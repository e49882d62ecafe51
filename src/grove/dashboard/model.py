"""What the server of the dashboard sends to the page. Data only: this is the contract between both.

A page reads a `Picture` once, and then `Delta`s: in each map of a delta an object replaces the one of the
same key, and null removes it. All keys of sets and gangs are `namespace/name`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.explanation.model import EventView, ReasonView
from grove.views.operator_view import OperatorView
from grove.views.status.model import Verdict


class Wire(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all parts."""


class Use(Wire, frozen=True):
    """What the pods of one gang, or all other pods that a viewer may not see or that are not ours, use of one
    node."""

    gang: str = ""
    """Empty: pods that belong to no gang that the viewer may see."""
    gpus: int = 0
    pods: int = 0
    reserved: bool = False
    """The operator has nominated the pods for the node; the scheduler has not bound them yet."""


class NodeCells(Wire, frozen=True):
    """A node, its GPUs and what uses them. GPUs that no use counts are free."""

    domains: Mapping[str, str] = {}
    """By label of a level of any topology, the domain that the node is in."""
    gpus: int = 0
    ready: bool = True
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    """The keys of taints that keep pods out, without the one that every cordoned node has."""
    partition: str = ""
    """The NVLink partition."""
    uses: tuple[Use, ...] = ()


class PlacedUnit(Wire, frozen=True):
    """The domain that a gang, a group replica or a clique is in, as the status of the gang says."""

    unit: str
    label: str
    domain: str


class GangSummary(Wire, frozen=True):
    """A PodGang."""

    set: str
    """The key of its set."""
    phase: str = ""
    pods: int = 0
    ready: int = 0
    gpus: int = 0
    """What all its pods request, and what each of them gets by claims of its own."""
    created: str = ""
    waiting: ReasonView | None = None
    """Why it waits; its first reason."""
    waiting_since: str = ""
    placed: tuple[PlacedUnit, ...] = ()
    score: float | None = None


class SetSummary(Wire, frozen=True):
    """A PodCliqueSet."""

    verdict: Verdict
    summary: str = ""
    """How many replicas, gangs and pods are there, in a few words."""
    available: int = 0
    replicas: int = 0
    created: str = ""
    graph: str = ""
    """The name of the DynamoGraphDeployment that it belongs to."""
    reasons: tuple[ReasonView, ...] = ()
    revision: int = 0
    """Grows with each change of the set or of what belongs to it: then the page reads it again."""


class LevelLabel(Wire, frozen=True):
    """A level of a topology."""

    name: str
    label: str


class TopologySummary(Wire, frozen=True):
    """A topology, from broad to narrow. Its hosts are not a level of it."""

    name: str
    levels: tuple[LevelLabel, ...] = ()


class Connection(Wire, frozen=True):
    """Whether the server of the dashboard follows the API server."""

    connected: bool = True
    problem: str = ""
    since: str = ""
    """When it was interrupted."""


class Viewer(Wire, frozen=True):
    """The user, and what they see."""

    name: str = ""
    """Empty if there is no sign-in: the user of the kubeconfig."""
    namespaces: tuple[str, ...] | None = None
    """None: all."""
    nodes: bool = True
    """Whether they see nodes. Without, the map shows only the domains of gangs, without foreign load."""
    signs_in: bool = False


class Source(Wire, frozen=True):
    """Where the picture comes from."""

    name: str
    """The URL of an API server, or the name of a snapshot file."""
    live: bool = True
    server_version: str = ""
    taken_at: str = ""
    """Of a snapshot."""


class Picture(Wire, frozen=True):
    """Everything that a viewer sees, at one time."""

    version: str
    """Opaque: a stream of deltas goes on from here."""
    now: str
    """The clock of the server."""
    source: Source
    viewer: Viewer = Viewer()
    connection: Connection = Connection()
    operator: OperatorView | None = None
    """Null if Leases cannot be read."""
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""
    topologies: tuple[TopologySummary, ...] = ()
    nodes: Mapping[str, NodeCells] = {}
    gangs: Mapping[str, GangSummary] = {}
    sets: Mapping[str, SetSummary] = {}
    events: tuple[EventView, ...] = ()
    """The latest events of the operator, the oldest first."""


class Delta(Wire, frozen=True):
    """What has changed since a version. A field that is null has not changed."""

    version: str
    now: str
    connection: Connection | None = None
    operator: OperatorView | None = None
    unread: tuple[str, ...] | None = None
    topologies: tuple[TopologySummary, ...] | None = None
    nodes: Mapping[str, NodeCells | None] = {}
    gangs: Mapping[str, GangSummary | None] = {}
    sets: Mapping[str, SetSummary | None] = {}
    events: tuple[EventView, ...] = ()
    """New ones, and those that were repeated: they replace the one of the same name and namespace of
    `about`."""


class Heartbeat(Struct, frozen=True, rename="camel"):
    """What a stream sends at intervals: whether the picture is current."""

    now: str
    connection: Connection
    operator: OperatorView | None
    """Null if Leases cannot be read."""
