"""What is remembered about each key between two passes: one record per key, dropped when the key goes.

Nothing here is needed for correctness: after a restart of the operator all of it is empty, and the cluster
alone decides what is done. It keeps the operator from repeating log lines, events, reads and plans, and holds
what keys report to each other.
"""

from __future__ import annotations

from typing import Any, overload

from msgspec import field

from grove.api.types.common import LastError
from grove.api.types.pod import Pod
from grove.fabrics.resolved import DomainReport
from grove.kube.executor.keyed_executor import WriteProblem, WriteState
from grove.operator.engine.errors import NO_ERRORS, PassErrors
from grove.operator.engine.events import EventIdentity
from grove.operator.engine.message_backoff import MessageBackoff
from grove.operator.engine.status_publisher import PendingStatuses
from grove.operator.keys import DomainKey, GraphKey, Key, ReplicaKey, SetKey, WorkloadKey, parent_of
from grove.plan.model import Plan, ReplicaReport


class KeyState(WriteState):
    """The record of any key. Sets may have 50,000 replicas: what few keys need is None until then."""

    statuses: PendingStatuses | None = None
    """Statuses that are not written yet."""
    cached_plan: tuple[Any, Plan] | None = None
    """A plan whose statuses wait to be written, with its snapshot: valid while the snapshot is equal."""
    last_writes: tuple[tuple[str, int], ...] = ()
    """The ids of the writes of the latest plan, if all of them succeeded, with hashes of their content."""
    failed_writes: frozenset[str] = frozenset()
    """The ids of failed writes of a plan that was cut: other writes go first in the next pass."""
    logged_errors: frozenset[str] = frozenset()
    """Rejected writes that were logged."""
    lasting_events: frozenset[EventIdentity] = frozenset()
    """The identities of the events in the latest plan that describe a state."""
    errors: PassErrors = NO_ERRORS
    """The errors of the latest pass."""
    report: Any = None
    """What the latest plan reported to other keys."""
    only_statuses_left: bool = False
    """Whether nothing but statuses is left to write while pods start, as the latest plan says."""
    terminating_uid: str = ""
    """The UID of the key's object, if that is in a terminating namespace, where nothing can be created."""


class ReplicaState(KeyState):
    """The record of a replica."""

    deleted_pods: set[str] | None = None
    """Pods whose deletion was observed and that a gang may still refer to."""
    lost_pods: dict[str, Pod] | None = None
    """Pods that left the cache without having terminated: they were force-deleted, or lost their labels."""
    scheduler_message: MessageBackoff | None = None
    """When the status of a scheduler's object was last a reason for a pass."""


class SetState(KeyState):
    """The record of a set."""

    replicas: set[int] = field(default_factory=set)
    """The replicas that have a record."""
    reports: dict[int, ReplicaReport] = field(default_factory=dict)
    """The latest report of each replica."""
    surplus: set[int] = field(default_factory=set)
    """Replicas above `spec.replicas` that have objects left."""
    with_pods: set[int] = field(default_factory=set)
    """Deleted replicas that still have pods."""
    with_pods_uid: str = ""
    """The UID of the set that `with_pods` is about: a new set may have its name."""
    validated: tuple[tuple[str, int], str] | None = None
    """The UID and the generation that the admission rules were applied to, and their message."""
    write_problems: dict[WorkloadKey, tuple[WriteProblem, ...]] = field(default_factory=dict)
    """Slow writes and writes with an unknown outcome, of the set and its replicas."""
    write_errors: dict[str, LastError] = field(default_factory=dict)
    """The last errors that follow from them, by message."""


class GraphState(KeyState):
    """The record of a DynamoGraphDeployment."""

    ssh_key: tuple[str, str] | None = None
    """Its SSH key pair, until the Secret is created."""


class FabricDomainState(KeyState):
    """The record of a fabric domain."""

    report: DomainReport = DomainReport()


_TYPES: dict[type, type[KeyState]] = {
    DomainKey: FabricDomainState,
    ReplicaKey: ReplicaState,
    SetKey: SetState,
    GraphKey: GraphState,
}


class KeyStates:
    """The records of all keys."""

    def __init__(self) -> None:
        self._states: dict[Key, KeyState] = {}

    def __len__(self) -> int:
        return len(self._states)

    @overload
    def of(self, key: ReplicaKey) -> ReplicaState: ...
    @overload
    def of(self, key: SetKey) -> SetState: ...
    @overload
    def of(self, key: GraphKey) -> GraphState: ...
    @overload
    def of(self, key: DomainKey) -> FabricDomainState: ...
    @overload
    def of(self, key: Key) -> KeyState: ...
    def of(self, key: Key) -> KeyState:
        """The record of a key; a new one if it has none."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _TYPES.get(type(key), KeyState)()
            if isinstance(key, ReplicaKey):
                self.of(parent_of(key)).replicas.add(key.replica)
        return state

    @overload
    def find(self, key: ReplicaKey) -> ReplicaState | None: ...
    @overload
    def find(self, key: SetKey) -> SetState | None: ...
    @overload
    def find(self, key: DomainKey) -> FabricDomainState | None: ...
    @overload
    def find(self, key: Key) -> KeyState | None: ...
    def find(self, key: Key) -> KeyState | None:
        """The record of a key, if it has one."""
        return self._states.get(key)

    def replicas_of(self, key: Key) -> list[ReplicaKey]:
        """The replicas of a set that have a record; none for other keys."""
        if not isinstance(key, SetKey) or (state := self.find(key)) is None:
            return []
        return [ReplicaKey(key.namespace, key.name, replica) for replica in state.replicas]

    def drop(self, key: Key) -> None:
        """The key does not exist any more."""
        self._states.pop(key, None)
        if isinstance(key, ReplicaKey) and (parent := self.find(parent_of(key))) is not None:
            parent.replicas.discard(key.replica)
            parent.reports.pop(key.replica, None)
            if parent == SetState():  # it was created for this replica: its set does not exist
                self._states.pop(parent_of(key))
