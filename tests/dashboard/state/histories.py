"""Clusters in memory whose objects change one by one, as watches report it, and boards of them."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import Node
from grove.cluster_state.operator_setup import operator_setup
from grove.dashboard.model import Source
from grove.dashboard.state.base import CachedBoard
from grove.dashboard.state.changes import Facts
from grove.dashboard.state.observed import Observed
from grove.dashboard.state.recent_events import EventStore, RecentEvents
from grove.dashboard.state.refresh import Refresher
from grove.explanation.events import Event

Body = dict[str, Any]
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
CREATED = "2027-01-15T07:00:00Z"
GPU = "nvidia.com/gpu"
DRIVER = "gpu.nvidia.com"
_SETUP = operator_setup()
RACK, BLOCK = "topology/rack", "topology/block"


class MemoryCluster:
    """Objects by kind and key, and a board that is fed with each change of them."""

    def __init__(self, clock: float = NOW) -> None:
        self.now = clock
        self.facts = Facts()
        self.objects: dict[tuple[str, str, str], Body] = {}
        self._version = 0
        self.observed = Observed("lease", nodes=True, setup=_SETUP)
        self.observed.leases = None
        self.events = RecentEvents()
        self._event_store = EventStore(self.events, "operator", None)
        self.refresher = Refresher(self.observed, self.events, Source("memory"), lambda: self.now)
        self.board = CachedBoard(self.observed, self.refresher)
        caches = self.observed.caches
        caches.nodes.use_list([])
        devices = caches.devices
        assert devices is not None
        self._caches: dict[str, Any] = {
            "set": caches.sets,
            "group": caches.groups,
            "clique": caches.cliques,
            "gang": caches.gangs,
            "topology": caches.topologies,
            "class": devices.classes,
            "slice": devices.slices,
            "claim": devices.claims,
            "template": caches.claim_templates,
        }
        for cache in (*self._caches.values(), caches.pods, caches.cluster_pods):
            cache.replace([], "0")

    def put(self, kind: str, body: Body) -> None:
        """Create or change an object."""
        meta = body["metadata"]
        key = (kind, meta.get("namespace", ""), meta["name"])
        self._version += 1
        stored = {"uid": "/".join(key), "creationTimestamp": CREATED, "resourceVersion": str(self._version)}
        event = "MODIFIED" if key in self.objects else "ADDED"
        self._send(event, kind, {**body, "metadata": {**meta, **stored}})
        self.objects[key] = body

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object, if there is one."""
        body = self.objects.pop((kind, namespace, name), None)
        if body is not None:
            self._version += 1
            meta = {"uid": f"{kind}/{namespace}/{name}", **body["metadata"]}
            meta["resourceVersion"] = str(self._version)
            self._send("DELETED", kind, {**body, "metadata": meta})

    def _send(self, event: str, kind: str, body: Body) -> None:
        caches, text = self.observed.caches, msgspec.json.encode(body)
        if kind == "event":
            if event != "DELETED":
                self._event_store.apply_event(event, msgspec.json.decode(text, type=Event))
        elif kind == "pod":
            pods = caches.cluster_pods
            assert pods is not None
            if body["metadata"].get("labels", {}).get(labels.MANAGED_BY) == labels.OPERATOR:
                caches.pods.apply_event(event, msgspec.json.decode(text, type=caches.pods.as_type))
            pods.apply_event(event, msgspec.json.decode(text, type=pods.as_type))
        elif kind == "node":
            assert caches.nodes._listed is not None
            caches.nodes._listed.cache.apply_event(event, msgspec.json.decode(text, type=Node))
        else:
            cache = self._caches[kind]
            cache.apply_event(event, msgspec.json.decode(text, type=cache.as_type))

    def refresh(self) -> None:
        """Publish what has changed."""
        nodes = self.observed.caches.nodes
        if nodes.needs_list:  # as their watch does
            nodes.use_list(
                msgspec.convert({**body, "metadata": {"uid": name, **body["metadata"]}}, Node)
                for (kind, _, name), body in self.objects.items()
                if kind == "node"
            )
        self.refresher.refresh(self.facts)

    def again(self) -> MemoryCluster:
        """Another board of the same objects, which sees them for the first time."""
        other = MemoryCluster(self.now)
        other.facts = self.facts
        for (kind, _, _), body in self.objects.items():
            other.put(kind, body)
        other.refresh()
        return other


def meta(name: str, namespace: str = "", **more: Any) -> Body:
    return {"name": name, "namespace": namespace, **more}


def owned(namespace: str, set_name: str, name: str, replica: int = 0, **more: str) -> Body:
    """The metadata of an object that belongs to a set."""
    found = {
        labels.MANAGED_BY: labels.OPERATOR,
        labels.PART_OF: set_name,
        labels.SET_REPLICA: str(replica),
        **more,
    }
    return meta(name, namespace, labels=found)


def a_node(name: str, rack: str = "r0", gpus: int = 8, *, ready: bool = True, **spec: Any) -> Body:
    allocatable = {"pods": "110", **({GPU: str(gpus)} if gpus else {})}
    return {
        "metadata": meta(name, labels={RACK: rack, BLOCK: "b0", "kubernetes.io/hostname": name}),
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def a_pod(metadata: Body, node: str = "", *, nominated: str = "", gpus: int = 2, ready: bool = False) -> Body:
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus)} if gpus else {}}}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running", "nominatedNodeName": nominated, "conditions": conditions},
    }


def a_set(namespace: str, name: str, replicas: int = 1, **status: Any) -> Body:
    clique = {"name": "worker", "spec": {"replicas": 2, "podSpec": {"containers": [{"name": "main"}]}}}
    return {
        "metadata": meta(name, namespace, labels={labels.MANAGED_BY: labels.OPERATOR}),
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
        "status": status,
    }


def a_clique(
    namespace: str,
    set_name: str,
    replica: int = 0,
    *,
    replicas: int = 2,
    gpus: int = 2,
    templates: tuple[str, ...] = (),
) -> Body:
    container = {"name": "main", "resources": {"limits": {GPU: str(gpus)}}}
    claims = [{"name": f"c{i}", "resourceClaimTemplateName": name} for i, name in enumerate(templates)]
    gang = f"{set_name}-{replica}"
    own = {labels.GANG: gang, labels.CLIQUE_TEMPLATE: "worker"}
    return {
        "metadata": owned(namespace, set_name, f"{gang}-worker", replica, **own),
        "spec": {"replicas": replicas, "podSpec": {"containers": [container], "resourceClaims": claims}},
    }


def a_template(namespace: str, name: str, count: int = 1, device_class: str = DRIVER) -> Body:
    """A ResourceClaimTemplate."""
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count}}
    return {"metadata": meta(name, namespace), "spec": {"spec": {"devices": {"requests": [request]}}}}


def a_gang(
    namespace: str, set_name: str, replica: int = 0, phase: str = "Pending", pods: int = 2, waiting: str = ""
) -> Body:
    name = f"{set_name}-{replica}"
    references = [{"namespace": namespace, "name": f"{name}-worker-{i}"} for i in range(pods)]
    condition = {
        "type": "Waiting",
        "status": "True",
        "reason": waiting,
        "message": f"{name} waits; ask an administrator",
        "lastTransitionTime": "2027-01-15T07:59:30Z",
    }
    group = {"name": f"{name}-worker", "podReferences": references, "minReplicas": pods}
    return {
        "metadata": owned(namespace, set_name, name, replica),
        "spec": {"podgroups": [group]},
        "status": {"phase": phase, "conditions": [condition] if waiting else []},
    }


def gang_pod(namespace: str, set_name: str, index: int, replica: int = 0, **pod: Any) -> Body:
    """A pod of the gang of a replica."""
    gang = f"{set_name}-{replica}"
    own = {labels.GANG: gang, labels.CLIQUE: f"{gang}-worker"}
    return a_pod(owned(namespace, set_name, f"{gang}-worker-{index}", replica, **own), **pod)


def a_topology(name: str, *levels: str) -> Body:
    named = [{"domain": level.rpartition("/")[2], "key": level} for level in levels]
    host = {"domain": "host", "key": "kubernetes.io/hostname"}
    return {"metadata": meta(name), "spec": {"levels": [*named, host]}}


def a_class() -> Body:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {"metadata": meta(DRIVER), "spec": {"selectors": [selector]}}


def a_slice(node: str, devices: int = 4) -> Body:
    listed = [{"name": str(number)} for number in range(devices)]
    pool = {"name": node, "generation": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
    return {"metadata": meta(node), "spec": spec}


def a_claim(namespace: str, name: str, node: str, device: int, *users: str) -> Body:
    result = {"driver": DRIVER, "pool": node, "device": str(device)}
    return {
        "metadata": meta(name, namespace),
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
        },
    }


def an_event(namespace: str, name: str, about: str, second: int = 0) -> Body:
    regarding = {"kind": "PodGang", "name": about, "namespace": namespace}
    time = f"2027-01-15T07:00:{second:02}.000000Z"
    return {
        "metadata": meta(name, namespace),
        "regarding": regarding,
        "reason": "Waits",
        "note": f"{about} waits",
        "type": "Warning",
        "eventTime": time,
    }
