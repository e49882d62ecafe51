"""All pods of the cluster in one watch, ours and those of others, for the placement of gangs.

One watch, because its order is relied upon: once it shows a nomination of ours, it has shown every pod that
was created before. For the same reason replies of own writes are not stored here, and since no entry is ever
newer than the watch, this needs less than a `grove.kube.cache.cache.Cache`: a pod of others that runs costs
at most 0.3 KiB.

Pods that have succeeded or failed use nothing. The API server leaves them out, as it does for the scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from sys import intern

from msgspec import Struct

from grove.api.formats import timestamps
from grove.api.naming import labels as label_keys
from grove.api.types.cluster.scheduling_pod import SchedulingMetadata, SchedulingPod
from grove.kube import metrics
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS, Resource
from grove.kube.client.undecodable import Undecodable, log_skipped
from grove.logger import get_logger
from grove.operator.caches.pod_profiles import PodProfile, PodProfiles

log = get_logger("grove.operator")


class ClusterPod(Struct, frozen=True, gc=False):
    """A pod of the cluster that has not ended."""

    namespace: str
    name: str
    version: int
    profile: PodProfile
    node: str = ""
    nominated_node: str = ""
    gang: str = ""
    """The gang of one of our pods; empty for the pods of others."""
    uid: str = ""
    """Empty, as `created` is 0, for bound pods of others: there are many of them, and nothing reads it."""
    created: float = 0.0
    """The creationTimestamp, in seconds since 1970."""
    leaves_by: float = 0.0
    """The deletionTimestamp, which is the end of the grace period, in seconds since 1970; 0: none."""
    domain: str = ""
    """The fabric domain of one of our pods; empty if it is in none."""

    @property
    def used_node(self) -> str:
        """The node whose resources the pod uses: a nomination counts, unless it is one of ours."""
        return self.node or ("" if self.gang else self.nominated_node)

    @property
    def is_unbound_foreign(self) -> bool:
        """Whether another owner's pod may be bound at any moment. The API server binds no terminating pod."""
        profile = self.profile
        return not (self.node or self.gang or profile.gated or profile.terminating)

    @property
    def is_undecided(self) -> bool:
        """Whether the scheduler has neither bound the pod nor found it unschedulable."""
        profile = self.profile
        return not (self.node or profile.gated or profile.terminating or profile.unschedulable)


Handler = Callable[[ClusterPod | None, ClusterPod | None], None]


class ClusterPods:
    """The pods of the cluster, by namespace and name."""

    resource: Resource = PODS
    as_type: type[SchedulingPod] = SchedulingPod
    namespace: str | None = None
    labels: str = ""
    fields: str = "status.phase!=Succeeded,status.phase!=Failed"

    def __init__(self) -> None:
        self.synced = asyncio.Event()
        self.synced_or_absent = self.synced  # pods are always served
        self._pods: dict[str, dict[str, ClusterPod]] = {}
        self._profiles = PodProfiles()
        self._skipped: dict[tuple[str, str], str] = {}
        self._handlers: list[Handler] = []
        self._sync_handlers: list[Callable[[], None]] = []
        self._reflector: Reflector[SchedulingPod, ClusterPod] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._pods.values()))

    def __iter__(self) -> Iterator[ClusterPod]:
        return (pod for pods in list(self._pods.values()) for pod in list(pods.values()))

    def get(self, namespace: str, name: str) -> ClusterPod | None:
        """The pod, or None if it does not exist or has ended."""
        return self._pods.get(namespace, {}).get(name)

    def subscribe(self, handler: Handler) -> None:
        """Call `handler(old, new)` on each change of what is kept; None: added or removed."""
        self._handlers.append(handler)

    def on_synced(self, handler: Callable[[], None]) -> None:
        """Call `handler` when all pods are listed for the first time."""
        self._sync_handlers.append(handler)

    @property
    def problem(self) -> str:
        """Why the watch is interrupted, such as a missing RBAC permission; empty if it is not."""
        return self._reflector.problem if self._reflector is not None else ""

    @property
    def forbidden(self) -> bool:
        """Whether a missing RBAC permission interrupts the watch."""
        return self._reflector is not None and self._reflector.forbidden

    async def run(self, client: Client) -> None:
        """Watch all pods, until cancelled."""
        self._reflector = Reflector(client, self)
        await self._reflector.run()

    # What the watch sends. Called by the reflector only.

    def compact(self, new: SchedulingPod) -> ClusterPod:
        """What is kept of a pod."""
        meta, node, gang = new.metadata, new.spec.node_name, _gang(new.metadata)
        identified = not node or gang
        return ClusterPod(
            intern(meta.namespace),
            meta.name,
            _version(meta.resource_version),
            self._profiles.of(new),
            intern(node),
            "" if node else intern(new.status.nominated_node_name),
            intern(gang),
            meta.uid if identified else "",
            _seconds(meta.creation_timestamp) if identified else 0.0,
            _seconds(meta.deletion_timestamp),
            intern(meta.labels.domain) if gang else "",
        )

    def apply_event(self, kind: str, new: SchedulingPod) -> None:
        """Apply one watch event. An event that is older than what is known is a repetition."""
        meta = new.metadata
        self._skipped.pop((meta.namespace, meta.name), None)
        old, version = self.get(meta.namespace, meta.name), _version(meta.resource_version)
        if kind == "DELETED":
            if old is not None and old.version <= version:
                self._remove(old)
        elif old is None or old.version < version:
            self._store(old, self.compact(new))

    def apply_undecodable(self, kind: str, found: Undecodable) -> None:
        """A pod that cannot be decoded keeps its last decodable state."""
        old = self.get(*found.key)
        if kind == "DELETED":
            self._skipped.pop(found.key, None)
            if old is not None:
                self._remove(old)
        else:
            self._skip(found)

    def apply_bookmark(self, _version: str) -> None:
        """Nothing depends on the version of the watch."""

    def mark_unlistable(self, _reason: str) -> None:
        """The reflector has the reason as its problem."""

    def replace(
        self, listed: Iterable[ClusterPod], _list_version: str, undecodable: Iterable[Undecodable] = ()
    ) -> None:
        """Apply a whole list."""
        kept: dict[str, set[str]] = {}
        for found in undecodable:
            self._skip(found)
            kept.setdefault(found.key[0], set()).add(found.key[1])
        for new in listed:
            kept.setdefault(new.namespace, set()).add(new.name)
            self._store(self.get(new.namespace, new.name), new)
        for old in self:
            if old.name not in kept.get(old.namespace, ()):
                self._remove(old)
        self._skipped = {key: why for key, why in self._skipped.items() if key[1] in kept.get(key[0], ())}
        if not self.synced.is_set():
            self.synced.set()
            for handler in self._sync_handlers:
                handler()

    def clear(self) -> None:
        """Forget all pods."""
        for old in self:
            self._remove(old)
        self._skipped.clear()

    def _store(self, old: ClusterPod | None, new: ClusterPod) -> None:
        self._pods.setdefault(new.namespace, {})[new.name] = new
        if old is None or _differs(old, new):
            self._notify(old, new)

    def _remove(self, old: ClusterPod) -> None:
        pods = self._pods[old.namespace]
        del pods[old.name]
        if not pods:
            del self._pods[old.namespace]
        self._notify(old, None)

    def _notify(self, old: ClusterPod | None, new: ClusterPod | None) -> None:
        """Call the handlers. If one fails, the others still run, and the watch goes on."""
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception as bug:
                metrics.handler_failures_total.labels(self.resource.label).inc()
                found = new or old
                key = f"{found.namespace}/{found.name}" if found is not None else ""
                log.exception("handler failed", key=key, action="notify", reason=str(bug))

    def _skip(self, found: Undecodable) -> None:
        if self._skipped.get(found.key) != found.reason:
            self._skipped[found.key] = found.reason
            log_skipped(found, self.resource)


def _differs(old: ClusterPod, new: ClusterPod) -> bool:
    """Whether anything but the version changed. Equal profiles are one object."""
    return (
        old.profile is not new.profile
        or old.node != new.node
        or old.nominated_node != new.nominated_node
        or old.uid != new.uid
        or old.gang != new.gang
        or old.leaves_by != new.leaves_by
        or old.domain != new.domain
    )


def _gang(meta: SchedulingMetadata) -> str:
    return meta.labels.gang if meta.labels.managed_by == label_keys.OPERATOR else ""


def _version(written: str) -> int:
    return int(written) if written.isdecimal() else 0


def _seconds(written: str | None) -> float:
    return timestamps.parse(written).timestamp() if written else 0.0
