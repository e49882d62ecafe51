"""What single pages of the dashboard are made of. Data only; sent as JSON."""

from __future__ import annotations

from enum import StrEnum

from grove.dashboard.model import Wire
from grove.explanation.model import ContainerView, Explanation, ObjectRef
from grove.views.set_view import SetView
from grove.views.status.model import StatusView


class TimelineKind(StrEnum):
    """What an entry of a time line is part of."""

    START = "start"
    ROLLOUT = "rollout"
    RECOVERY = "recovery"
    SCALING = "scaling"
    PLACEMENT = "placement"
    OTHER = "other"


class Severity(StrEnum):
    """Whether an entry reports a problem."""

    NORMAL = "normal"
    WARNING = "warning"


class TimelineSource(StrEnum):
    """Where an entry was read."""

    CONDITION = "condition"
    """In a status or in metadata: only the latest change is known."""
    EVENT = "event"


class TimelineEntry(Wire, frozen=True):
    """Something that has happened to a workload."""

    time: str
    kind: TimelineKind
    severity: Severity
    about: ObjectRef
    title: str
    message: str
    count: int
    """How often, or to how many objects."""
    source: TimelineSource


class WorkloadPage(Wire, frozen=True):
    """A set with everything below it, and what has happened to it."""

    set: SetView
    status: StatusView
    timeline: tuple[TimelineEntry, ...]
    """The oldest first."""
    containers: tuple[ContainerView, ...]
    unread: tuple[str, ...]
    left_out: int = 0
    """How many entries of the time line were left out."""


class ExplanationPage(Wire, frozen=True):
    """Why an object waits, as far as the viewer may know it."""

    explanation: Explanation
    unread: tuple[str, ...]


class NodePod(Wire, frozen=True):
    """A pod on a node."""

    namespace: str
    name: str
    gang: str
    """The key of its gang, `namespace/name`; empty if it is not ours."""
    gpus: int
    reserved: bool
    """The pod is nominated for the node, and not bound yet."""


class OtherPods(Wire, frozen=True):
    """The pods of namespaces that the viewer does not see."""

    pods: int
    gpus: int


class NodePage(Wire, frozen=True):
    """The pods on a node."""

    pods: tuple[NodePod, ...]
    others: OtherPods
    left_out: int = 0
    """How many pods were left out."""


class SearchHit(Wire, frozen=True):
    """Something whose name has the text that was searched for."""

    kind: str
    """`set`, `gang`, `pod`, `node` or `domain`."""
    name: str
    namespace: str
    detail: str
    link: str
    """The route of the page."""


class SearchPage(Wire, frozen=True):
    """The hits of a search, the best first."""

    hits: tuple[SearchHit, ...]
