"""DynamoGraphDeployments at work: one key for each, beside the sets that are made from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from grove.api.config import OperatorConfiguration, TopologyMode
from grove.api.intents import Delete, ObjectRef, Occurrence, Target
from grove.api.sets import PodCliqueSet
from grove.dynamo import closeness, companions, devices, naming
from grove.dynamo.adapters import ScalingAdapter
from grove.dynamo.components import Components, carrier
from grove.dynamo.graph import Graph
from grove.dynamo.grove import Grove
from grove.dynamo.keys import GROVE
from grove.dynamo.normalise import graph as normalised
from grove.dynamo.plan import GraphPlan, Told, plan_graph
from grove.dynamo.reading import read
from grove.dynamo.seen import Backend, Seen, StoredGraph, raw
from grove.dynamo.surroundings import Surroundings, provider, runs_on_grove
from grove.dynamo.types import DynamoGraphDeployment
from grove.fabrics.registry import Providers
from grove.kube.cache import Cache
from grove.kube.client import Client
from grove.kube.errors import KubeError, NotFound
from grove.kube.executor import Executor
from grove.kube.limiter import Limiter
from grove.kube.outcome import Outcome
from grove.kube.queue import Queue
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from grove.kube.store import CacheStore
from grove.kube.transport import Transport
from grove.operator import ssh
from grove.operator.caches import Caches
from grove.operator.graph_caches import GRAPHS, GraphCaches, GraphKey, graph_of
from grove.operator.graph_wakes import wire
from grove.operator.nodes import Nodes
from grove.operator.publish import Publisher, intents
from grove.rules.model import Facts
from grove.rules.shape import Misshapen
from grove.schedulers.registry import Backends

log = structlog.get_logger("grove.operator")

_REPORTER = "dynamographdeployment-controller"
_KIND = DynamoGraphDeployment.KIND


class Layer(Struct, frozen=True):
    """The layer as the operator's configuration wants it."""

    surroundings: Surroundings = Surroundings()
    facts: Facts = Facts()

    @classmethod
    def of(
        cls,
        config: OperatorConfiguration,
        in_use: Backends | None = None,
        fabrics: Providers | None = None,
    ) -> Layer | None:
        """None if it is switched off."""
        if not config.dynamo.enabled:
            return None
        return cls(Surroundings.of(config), Facts.of(config, in_use=in_use, fabrics=fabrics))


async def foreign(client: Client) -> str:
    """Why the layer must not act: somebody else serves these kinds. Empty if nobody does."""
    name = _KIND.crd_name
    try:
        found: Any = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name, as_type=dict)
    except NotFound:
        return ""
    if found.get("spec", {}).get("conversion", {}).get("strategy") != "Webhook":
        return ""
    return (
        f"dynamo.enabled: CustomResourceDefinition {name} has a conversion webhook, so Dynamo's own operator "
        "serves it: set dynamo.enabled to false, or remove that operator and its definition"
    )


class Graphs:
    """Brings every deployment in order, whenever something about it changes."""

    def __init__(
        self,
        caches: Caches,
        known: GraphCaches,
        writes: Transport,
        limiter: Limiter,
        tell: Callable[[Occurrence], None],
        layer: Layer,
        nodes: Nodes,
        *,
        workers: int = 8,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._caches, self._known, self._layer = caches, known, layer
        self._tell, self._clock, self._nodes = tell, clock, nodes
        kept: tuple[Cache[Any], ...] = (caches.sets, caches.cliques, caches.groups, *known.all)
        resources = [*(cache.resource for cache in kept), SECRETS]
        self._executor = Executor(writes, resources, store=CacheStore(kept), limiter=limiter)
        self._backends: dict[str, Backend] = {backend.name: backend for backend in (Grove(), Components())}
        self._publisher: Publisher[GraphKey] = Publisher()
        self._keys: dict[GraphKey, tuple[str, str]] = {}
        """Pairs for SSH that are yet to be stored."""
        self._ending: dict[GraphKey, str] = {}
        """Deployments, by UID, in namespaces that are on their way out: nothing more can be done there."""
        self.queue: Queue[GraphKey] = Queue("graphs", self._work, workers=workers)
        self._sets = wire(caches, known, self.queue.wake)
        nodes.subscribe(self._on_nodes)

    async def _work(self, key: GraphKey) -> None:
        now = self._clock()
        stored = self._known.graphs.get(key.namespace, key.name)
        if stored is None:
            await self._clear(key)
            return
        if self._ending.get(key) == stored.metadata.uid:
            return
        seen = await self._seen(key, stored)
        plan = plan_graph(seen, self._backends, now)
        outcome = await self._executor.execute(plan.intents) if plan.intents else Outcome(())
        if outcome.in_vain:
            self._ending[key] = stored.metadata.uid
            return
        again = bool(plan.intents) and outcome.done
        if again:
            self._tell_news(stored, [news for news in plan.news if not news.of_status])
        if trouble := _trouble(outcome):
            plan = plan_graph(replace(seen, trouble=trouble), self._backends, now)
        told, later = await self._publish(key, plan) if not again else (True, self._loop_time())
        if told and later is None:
            self._tell_news(stored, [news for news in plan.news if news.of_status])
        self.queue.wake(key, later, failed=outcome.failed or outcome.outdated or not told)

    async def _seen(self, key: GraphKey, stored: StoredGraph) -> Seen:
        seen = Seen(
            stored=stored,
            surroundings=self._surroundings(),
            facts=replace(self._layer.facts, topologies=self._topologies()),
        )
        try:
            graph = normalised(read(raw(stored)))
        except Misshapen:
            return seen
        workload = self._workload(key, stored.metadata.uid)
        if workload is not None:
            self._keys.pop(key, None)
        names = {clique.metadata.name: clique for clique in self._parts(self._caches.cliques, workload)}
        groups = {group.metadata.name: group for group in self._parts(self._caches.groups, workload)}
        return replace(
            seen,
            surroundings=replace(
                seen.surroundings,
                claim_templates=self._templates(key, graph),
                node_labels=self._node_labels(graph),
            ),
            workload=workload,
            cliques=names,
            groups=groups,
            children=self._known.found(key.namespace, _named(graph)),
            ssh_key=await self._key(key, graph) if workload is None else None,
        )

    def _surroundings(self) -> Surroundings:
        return replace(
            self._layer.surroundings,
            topologies=self._topologies(),
            leader_worker_sets=self._known.leader_worker_sets,
        )

    def _topologies(self) -> dict[str, tuple[str, ...]]:
        """Of two kinds with one name, the ClusterTopology counts."""
        found = (*self._caches.topology_bindings, *self._caches.topologies)
        return {each.metadata.name: tuple(level.domain for level in each.spec.levels) for each in found}

    def _workload(self, key: GraphKey, uid: str = "") -> PodCliqueSet | None:
        """The set that the deployment controls."""
        found = self._caches.sets.get(key.namespace, self._sets.get(key, ""))
        if found is None or graph_of(found.metadata) != key:
            return None
        owners = {owner.uid for owner in found.metadata.owner_references}
        return found if not uid or uid in owners else None

    @staticmethod
    def _parts(cache: Cache[Any], workload: PodCliqueSet | None) -> list[Any]:
        if workload is None:
            return []
        return cache.by_index("set", (workload.metadata.namespace, workload.metadata.name))

    def _templates(self, key: GraphKey, graph: Graph) -> dict[str, dict[str, Any]]:
        """Those that its GPUs are counted by."""
        found = {name: self._caches.claim_templates.get(key.namespace, name) for name in devices.named(graph)}
        return {name: msgspec.json.decode(each.spec.spec) for name, each in found.items() if each is not None}

    def _node_labels(self, graph: Graph) -> frozenset[str] | None:
        """Those that its domains are and that a node has, where affinity enforces its constraints."""
        topology = self._layer.surroundings.topology
        if runs_on_grove(graph) or topology.mode is not TopologyMode.AFFINITY or not graph.constrained:
            return None
        labels = frozenset(closeness.wanted(graph, topology).values())
        self._nodes.want(labels)
        found = self._nodes.labels(labels)
        return None if found is None else labels & {label for node in found for label in node}

    def _on_nodes(self) -> None:
        for stored in self._known.graphs:
            if provider(stored.metadata.annotations) != GROVE:
                self.queue.wake(GraphKey(stored.metadata.namespace, stored.metadata.name))

    async def _key(self, key: GraphKey, graph: Graph) -> tuple[str, str] | None:
        if not companions.needs_ssh(graph):
            return None
        if key not in self._keys:
            self._keys[key] = await asyncio.to_thread(ssh.pair)
        return self._keys[key]

    async def _clear(self, key: GraphKey) -> None:
        """Delete the set of a deployment that is gone: the garbage collector would too, in its own time."""
        for memory in (self._keys, self._ending):
            memory.pop(key, None)
        self._publisher.forget(key)
        left = self._workload(key)
        if left is None or left.metadata.deletion_timestamp is not None:
            self.queue.forget(key)
            return
        meta = left.metadata
        about = Target(left.api_version, left.kind, meta.name, meta.namespace)
        outcome = await self._executor.execute([Delete(about, uid=meta.uid)])
        self.queue.wake(key, None, failed=outcome.failed)

    async def _publish(self, key: GraphKey, plan: GraphPlan) -> tuple[bool, float | None]:
        """Publish what is due. Returns whether that went well, and when more will be due."""
        drafts = (plan.draft,) if plan.draft is not None else ()
        due, later = self._publisher.consider(key, drafts, self._loop_time(), busy=False)
        if not due:
            return True, later
        outcome = await self._executor.execute(intents(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        return not (outcome.failed or outcome.outdated), None

    def _tell_news(self, stored: StoredGraph, news: list[Told]) -> None:
        for told in news:
            meta = stored.metadata
            regarding = ObjectRef(_KIND.api_version, _KIND.name, meta.name, meta.namespace, meta.uid)
            note, action = told.note[:1000], "Sync"
            self._tell(Occurrence(regarding, told.reason, note, action, told.warning, reporter=_REPORTER))

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()


async def serve(graphs: Callable[[], Graphs], client: Client, known: GraphCaches, grace: float) -> None:
    """Act as soon as everything is known, until cancelled; never on what somebody else serves."""
    await known.synced()
    try:
        why = await foreign(client)
    except KubeError as problem:
        why = str(problem)
    if why:
        log.error("not serving", key=GRAPHS.label, action="leave alone", reason=why)
        await asyncio.Event().wait()
    layer = graphs()
    layer.queue.start()
    log.info("serving", key=GRAPHS.label, action="lead", reason="dynamo.enabled")
    try:
        await asyncio.Event().wait()
    finally:
        await layer.queue.stop(grace)


def _named(graph: Graph) -> Iterator[tuple[str, str]]:
    for body in (*companions.owned(graph), *companions.shared(graph)):
        yield body["kind"], body["metadata"]["name"]
    for component in graph.components:
        yield carrier(graph, component)
        yield ScalingAdapter.KIND.name, naming.child(graph, component)
    for claim in graph.claims:
        yield "PersistentVolumeClaim", claim.name


def _trouble(outcome: Outcome) -> str:
    return "; ".join(dict.fromkeys(map(str, outcome.errors)))
