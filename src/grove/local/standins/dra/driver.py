"""The controller of the stand-in: one key per node and per domain, enqueued by watch events."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from grove.api.naming.external_keys import NVIDIA_GPU
from grove.api.types.kubernetes_objects import Node
from grove.fabrics.provider import Domain
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from grove.kube.errors import AlreadyExists, NotFound
from grove.kube.workqueue.queue import WorkQueue
from grove.local.standins.dra import domain_nodes, objects
from grove.local.standins.dra.claim_templates import Templates, name_of, template_of
from grove.local.standins.dra.domain_nodes import DomainResourceClaim
from grove.local.standins.dra.faults import DriverFaults
from grove.logger import get_logger
from grove.operator.crds import apply_crds

log = get_logger("grove.local")

_READY_DELAY = 0.05  # seconds from joining to readiness of a node, unless an annotation sets another delay
_BY_UID = "uid"
_BY_DOMAIN = "domain"
_BY_TEMPLATE = "template"


class _DomainKey(NamedTuple):
    namespace: str
    name: str


_Key = _DomainKey | str  # a domain, or a node by its name


class DraStandIn:
    """Simulates the driver for one cluster, until cancelled."""

    def __init__(self, client: Client, *, install: bool = True) -> None:
        self._client, self._install = client, install
        self._nodes: Cache[Node] = Cache(NODES, Node)
        by = {_BY_UID: _uid, _BY_TEMPLATE: _template}
        self._domains: Cache[Domain] = Cache(objects.DOMAINS, Domain, indexes=by)
        self._claims: Cache[DomainResourceClaim] = Cache(
            RESOURCE_CLAIMS, DomainResourceClaim, indexes={_BY_DOMAIN: _for_domain}
        )
        self._slices: Cache[Object] = Cache(RESOURCE_SLICES, Object)
        self._templates = Templates(client)
        self._faults = DriverFaults()
        self._since: dict[tuple[str, str], float] = {}
        """The time at which a node joined a domain, by the UID of the domain and the name of the node."""
        self._prepared: set[str] = set()
        self._lost: dict[_DomainKey, Domain] = {}
        self._queue: WorkQueue[_Key] = WorkQueue(objects.NAME, self._work, workers=4)
        self.ready = asyncio.Event()
        """Set when every existing node has its ResourceSlice."""

    async def run(self) -> None:
        """Install the driver's CRDs and DeviceClasses, and run the controller."""
        if self._install:
            async for _ in apply_crds(self._client, [objects.definition()]):
                pass
        for body in objects.device_classes():
            with suppress(AlreadyExists):
                await self._client.create(DEVICE_CLASSES, body, as_type=Object)
        known = (self._nodes, self._claims, self._slices, self._templates.cache, self._faults.cache)
        caches: tuple[Cache[Any], ...] = (*known, self._domains)
        async with asyncio.TaskGroup() as tasks:
            for cache in caches:
                tasks.create_task(Reflector(self._client, cache).run())
            for cache in caches[:-1]:
                await cache.synced.wait()
            self._connect_watches()
            await asyncio.gather(*(self._publish(node) for node in self._nodes))
            self.ready.set()
            self._queue.start()
            try:
                await asyncio.Event().wait()
            finally:
                await self._queue.stop(0.0)

    def _connect_watches(self) -> None:
        for node in self._nodes:
            self._on_node(None, node)
        for domain in self._domains:
            self._on_domain(None, domain)
        self._nodes.subscribe(self._on_node)
        self._slices.subscribe(self._on_slice)
        self._domains.subscribe(self._on_domain)
        self._claims.subscribe(self._on_claim)
        self._templates.cache.subscribe(self._on_template)
        self._faults.subscribe(self._on_faults)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if new is None or (old is not None and _relevant_fields(old) == _relevant_fields(new)):
            return
        name = new.metadata.name
        self._queue.enqueue(name)
        # The channel of the node may have changed.
        waiting = {claim.domain for claim in self._claims if claim.node == name}
        for domain in self._domains:
            if domain.metadata.uid in waiting or _entry(domain, name) is not None:
                self._queue.enqueue(_key(domain))

    def _on_slice(self, old: Object | None, new: Object | None) -> None:
        """Restore a deleted ResourceSlice, unless its node publishes none."""
        if old is not None and new is None:
            for owner in old.metadata.owner_references:
                self._queue.enqueue(owner.name)

    def _on_domain(self, old: Domain | None, new: Domain | None) -> None:
        found = new or old
        assert found is not None
        if new is None:  # its finalizer was removed by force, or its CRD was deleted
            self._lost[_key(found)] = found
        self._queue.enqueue(_key(found))

    def _on_claim(self, old: DomainResourceClaim | None, new: DomainResourceClaim | None) -> None:
        for claim in (old, new):
            if claim is not None and claim.domain:
                for domain in self._domains.by_index(_BY_UID, claim.domain):
                    self._queue.enqueue(_key(domain))

    def _on_template(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the domain that waits for the name of a deleted template."""
        if old is not None and new is None:
            for domain in self._domains.by_index(_BY_TEMPLATE, name_of(old)):
                self._queue.enqueue(_key(domain))

    def _on_faults(self) -> None:
        """All domains: a fault of the whole driver began or ended."""
        for domain in self._domains:
            self._queue.enqueue(_key(domain))

    async def _work(self, key: _Key) -> None:
        if isinstance(key, str):
            await self._reconcile_node(key)
        elif self._faults.controller_dead:
            return
        elif lost := self._lost.pop(key, None):
            await self._clean(lost)
            self._queue.enqueue(key)
        elif (domain := self._domains.get(key.namespace, key.name)) is None:
            self._queue.forget(key)
        elif domain.metadata.deletion_timestamp is not None:
            await self._remove_domain(domain)
        else:
            await self._prepare_domain(key, domain)

    # Nodes.

    async def _publish(self, node: Node) -> None:
        """Publish a channel for a node with GPUs, unless an annotation disables it."""
        if node.status.allocatable.get(NVIDIA_GPU, "0") in ("0", 0):
            return
        body = objects.resource_slice(node.metadata.name, node.metadata.uid)
        if objects.NO_CHANNEL in node.metadata.annotations:
            with suppress(NotFound):
                await self._client.delete(RESOURCE_SLICES, body["metadata"]["name"], as_type=Object)
            return
        if self._slices.get("", body["metadata"]["name"]) is None:
            with suppress(AlreadyExists):
                await self._client.create(RESOURCE_SLICES, body, as_type=Object)

    async def _reconcile_node(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None:
            return
        await self._publish(node)
        uid = node.metadata.labels.get(objects.KEY, "")
        if uid and self._domains.synced.is_set() and not self._domains.by_index(_BY_UID, uid):
            await self._unlabel(node)

    async def _unlabel(self, node: Node) -> None:
        """Take a node out of its domain, unless an annotation lets it keep the stale label."""
        if objects.KEEP_LABEL not in node.metadata.annotations:
            await self._label(node.metadata.name, None)

    async def _label(self, node: str, uid: str | None) -> None:
        with suppress(NotFound):
            body = {"metadata": {"labels": {objects.KEY: uid}}}
            await self._client.patch(NODES, node, body, as_type=Object)

    # Domains.

    async def _prepare_domain(self, key: _DomainKey, domain: Domain) -> None:
        meta = domain.metadata
        if objects.KEY not in meta.finalizers:
            body = {"metadata": {"resourceVersion": meta.resource_version,
                                 "finalizers": [*meta.finalizers, objects.KEY]}}  # fmt: skip
            await self._patch_domain(domain, body)
            return  # the watch event of the patch enqueues the domain again
        template_due = self._faults.template_due(domain)
        if template_due is not None and template_due <= asyncio.get_running_loop().time():
            await self._templates.create(domain)
            template_due = None
        claims = [claim for claim in self._claims.by_index(_BY_DOMAIN, meta.uid) if claim.node]
        joined = await self._take_nodes(meta.uid, {claim.node for claim in claims})
        ready, again = self._readiness(meta.uid, joined)
        await self._write_status(domain, joined, ready)
        await self._prepare([claim for claim in claims if ready.get(claim.node)])
        for due in (again, template_due):
            self._queue.enqueue(key, due)

    async def _take_nodes(self, uid: str, wanted: set[str]) -> list[Node]:
        """Label the nodes of the domain's pods; a node that is in another domain stays there."""
        for node in list(self._nodes):
            if node.metadata.labels.get(objects.KEY) == uid and node.metadata.name not in wanted:
                self._since.pop((uid, node.metadata.name), None)
                await self._unlabel(node)
        joined = []
        for name in sorted(wanted):
            if (found := self._nodes.get("", name)) is None:
                continue
            holder = found.metadata.labels.get(objects.KEY)
            if holder not in (None, uid):
                log.warning("channel busy", key=name, action="wait", reason=f"the node is in domain {holder}")
                continue
            if holder is None:
                await self._label(name, uid)
            joined.append(found)
        return joined

    def _readiness(self, uid: str, joined: list[Node]) -> tuple[dict[str, bool], float | None]:
        """Which nodes are ready in the domain, and the time at which the next one will be."""
        now = asyncio.get_running_loop().time()
        ready: dict[str, bool] = {}
        again: list[float] = []
        for node in joined:
            notes, name = node.metadata.annotations, node.metadata.name
            due = self._since.setdefault((uid, name), now) + float(notes.get(objects.DELAY, _READY_DELAY))
            broken = objects.NEVER_READY in notes or objects.FLIP in notes
            ready[name] = not broken and now >= due
            if not broken and now < due:
                again.append(due)
        return ready, min(again, default=None)

    async def _write_status(self, domain: Domain, joined: list[Node], ready: dict[str, bool]) -> None:
        before = domain.status or {}
        known = {entry["name"]: entry for entry in before.get("nodes") or ()}
        listed = domain_nodes.entries(joined, known, ready)
        status = {"status": domain_nodes.summary(listed), "nodes": listed}
        if status != {"status": before.get("status"), "nodes": before.get("nodes") or []}:
            await self._patch_domain(domain, {"status": status}, "status")

    async def _prepare(self, claims: list[DomainResourceClaim]) -> None:
        """Annotate the pods of these claims as prepared: KWOK waits for the annotation."""
        body = {"metadata": {"annotations": {objects.PREPARED: "true"}}}
        for claim in claims:
            for pod in claim.pods:
                if claim.metadata.uid not in self._prepared:
                    with suppress(NotFound):
                        await self._client.patch(
                            PODS, pod, body, namespace=claim.metadata.namespace, as_type=Object
                        )
                    self._prepared.add(claim.metadata.uid)

    async def _remove_domain(self, domain: Domain) -> None:
        """Delete template, labels and finalizer at once, even if pods use the domain, as the driver does."""
        meta = domain.metadata
        if objects.KEY not in meta.finalizers:
            return
        await self._clean(domain)
        rest = [name for name in meta.finalizers if name != objects.KEY]
        body = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": rest}}
        await self._patch_domain(domain, body)

    async def _clean(self, domain: Domain) -> None:
        await self._templates.remove(domain)
        for node in list(self._nodes):
            if node.metadata.labels.get(objects.KEY) == domain.metadata.uid:
                await self._unlabel(node)

    async def _patch_domain(self, domain: Domain, body: Mapping[str, object], subresource: str = "") -> None:
        name, namespace = domain.metadata.name, domain.metadata.namespace
        with suppress(NotFound):
            found = await self._client.patch(
                objects.DOMAINS, name, body, namespace=namespace, as_type=Domain, subresource=subresource
            )
            self._domains.apply_reply(found)


def _key(domain: Domain) -> _DomainKey:
    return _DomainKey(domain.metadata.namespace, domain.metadata.name)


def _entry(domain: Domain, node: str) -> dict[str, object] | None:
    nodes = (domain.status or {}).get("nodes") or ()
    return next((entry for entry in nodes if entry["name"] == node), None)


def _relevant_fields(node: Node) -> tuple[object, ...]:
    """The fields of a node that the stand-in uses; heartbeats are ignored."""
    notes = {key: text for key, text in node.metadata.annotations.items() if key.startswith(objects.NAME)}
    return node.metadata.uid, node.metadata.labels, notes, node.status.allocatable.get(NVIDIA_GPU)


def _uid(domain: Domain) -> Iterator[Hashable]:
    yield domain.metadata.uid


def _template(domain: Domain) -> Iterator[Hashable]:
    yield domain.metadata.namespace, template_of(domain)


def _for_domain(claim: DomainResourceClaim) -> Iterator[Hashable]:
    if claim.domain:
        yield claim.domain
