"""Renders the set of a DynamoGraphDeployment as the operator would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.operator_setup import OperatorSetup
from grove.dry_run.memory_cluster import AppliedWrite
from grove.dry_run.operator import DryOperator
from grove.dry_run.redacted_graph import redacted_writes
from grove.dynamo.api.common import BETA
from grove.dynamo.backends.grove import GroveBackend
from grove.dynamo.backends.lws import LwsBackend
from grove.dynamo.conversion.objects import converted
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.snapshot import StoredGraph
from grove.kube.client import decoding
from grove.operator.caches.dynamo import GRAPHS, GraphCaches
from grove.operator.caches.registry import BY_GRAPH
from grove.operator.dynamo_settings import DynamoSettings
from grove.operator.keys import GraphKey
from grove.operator.observers.dynamo import GraphObserver
from grove.plan.model import Plan
from grove.rules.podcliqueset.defaults import default_set

Body = dict[str, Any]
_SET = f"{PodCliqueSet.KIND.api_version}/{PodCliqueSet.KIND.name}"
_GRAPH = f"{GRAPHS.api_version}/{GRAPHS.kind}"
_READ = (PodCliqueSet.KIND.name, GRAPHS.kind)
"""The kinds of a graph's objects that are read as a whole. Which others a graph has already is not known."""


class RenderedSet(Struct, frozen=True):
    """The set of a graph, and the objects that are written for the graph: of one that exists, only those of
    kinds that are read."""

    body: Body | None
    """None: no set is rendered."""
    existed: bool = False
    writes: tuple[AppliedWrite, ...] = ()
    errors: tuple[str, ...] = ()


async def rendered_set(
    operator: DryOperator, setup: OperatorSetup, namespace: str, name: str, body: Body, *, redacted: bool
) -> RenderedSet:
    """The set of a graph that is to be stored. `redacted`: the cluster is that of a snapshot file."""
    settings = DynamoSettings.of(setup.configuration, setup.backends, setup.fabrics)
    if settings is None:
        return RenderedSet(None, errors=("dynamo.enabled is false in the configuration of the operator",))
    caches = GraphCaches()
    before = operator.memory.get(_GRAPH, namespace, name)
    stored = operator.memory.put(converted(body, BETA), operator.now)
    caches.graphs.apply_event("ADDED", decoding.decode_text(msgspec.json.encode(stored), StoredGraph))
    key = GraphKey(namespace, name)
    known = operator.caches.sets.by_index(BY_GRAPH, key)
    observer = GraphObserver(operator.caches, caches, settings, operator.states)
    snapshot = await observer.observe(key)
    assert snapshot is not None
    backends = {each.name: each for each in (GroveBackend(), LwsBackend())}
    plan = plan_graph(snapshot, backends, operator.now)
    intents = redacted_writes(plan.intents, before, snapshot) if redacted else plan.intents
    applied = operator.memory.apply(intents, operator.now)
    writes = tuple(each for each in applied if before is None or each.kind in _READ)
    found = operator.caches.sets.by_index(BY_GRAPH, key)
    if not found:
        return RenderedSet(None, writes=writes, errors=tuple(_messages(plan)))
    rendered = operator.memory.get(_SET, namespace, found[0].metadata.name)
    assert rendered is not None
    return RenderedSet(default_set(rendered), bool(known), writes)


def _messages(plan: Plan) -> Iterator[str]:
    """Why nothing is rendered, from the conditions of the graph."""
    for update in plan.status_updates:
        for condition in update.desired.conditions:
            if condition.message:
                yield condition.message
