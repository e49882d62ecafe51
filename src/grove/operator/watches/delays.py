"""The delays of replicas: how long after a change of one of its objects a replica is reconciled.

Status changes of pods enqueue their replica after a short delay: the pods of a replica get their nodes and
become ready one after another, and one pass over all of them is enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grove import timing
from grove.api.types.pod import Pod
from grove.kube.cache.cache import HasMetadata
from grove.operator.caches.predicates import metadata_changed
from grove.operator.caches.registry import Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.engine.message_backoff import MessageBackoff
from grove.operator.keys import ReplicaKey
from grove.plan.members import pod_state
from grove.schedulers.backend import SchedulerObject


class ReplicaDelays:
    """The delays of replicas. `start_delay` returns the current delay for one that is starting."""

    def __init__(self, caches: Caches, states: KeyStates, start_delay: Callable[[ReplicaKey], float]) -> None:
        self._sets, self._states, self._start_delay = caches.sets, states, start_delay

    def of_object(self, old: HasMetadata | None, _new: HasMetadata | None, key: ReplicaKey) -> float:
        """None, except for a new object: the operator created it, and more objects follow."""
        return self._start_delay(key) if old is None else 0.0

    def of_pod(self, old: Pod | None, new: Pod | None, key: ReplicaKey) -> float:
        """None if the pod is deleted or begins to terminate; a short delay if its node, gates, status, or the
        labels that the API server adds with the node change."""
        if old is None:
            return self._start_delay(key)
        if self._is_terminating(key):
            return timing.BATCH_DELAY  # its set has deleted the pod, and waits for the last of many
        if new is None or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
            return 0.0
        if pod_state.ready(old) or pod_state.ended(new) or pod_state.errored(new):
            return timing.POD_STATUS_DELAY
        return timing.POD_STATUS_DELAY + self._start_delay(key)

    def _is_terminating(self, key: ReplicaKey) -> bool:
        workload = self._sets.get(key.namespace, key.set_name)
        if workload is None:
            return False
        return workload.metadata.deletion_timestamp is not None or key.replica >= workload.spec.replicas

    def of_scheduler_object(
        self, old: SchedulerObject | None, new: SchedulerObject | None, key: ReplicaKey
    ) -> float:
        """None if spec or metadata changed; a back-off if only the status did, which may change often."""
        if old is None or new is None or old.spec != new.spec or metadata_changed(old, new):
            return self.of_object(old, new, key)
        now, state = asyncio.get_running_loop().time(), self._states.of(key)
        backoff = state.scheduler_message = state.scheduler_message or MessageBackoff()
        if (due := backoff.due_at(now)) <= now:
            backoff.record(now)
        return due - now
