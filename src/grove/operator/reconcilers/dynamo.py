"""Reconciles DynamoGraphDeployments: one key for each. The sets that are rendered from them are reconciled as
any other set."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from grove import timing
from grove.api.intents import ObjectRef
from grove.dynamo.backends.grove import GroveBackend
from grove.dynamo.backends.lws import LwsBackend
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.reconcile.status import with_error
from grove.dynamo.snapshot import GraphBackend, GraphSnapshot
from grove.kube.client.client import Client
from grove.kube.client.retry import Backoff
from grove.kube.errors import KubeError
from grove.logger import get_logger
from grove.operator.caches.dynamo import GRAPHS, GraphCaches
from grove.operator.dynamo_settings import dynamo_operator_conflict
from grove.operator.engine.key_state import KeyStates
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.engine.terminating_namespaces import is_in_terminating_namespace
from grove.operator.keys import GraphKey
from grove.operator.observers.dynamo import GraphObserver
from grove.plan.model import Plan
from grove.plan.writes.builders import reference

log = get_logger("grove.operator")


class GraphReconciler(Reconciler[GraphKey, GraphSnapshot]):
    """Creates and updates the workloads of a deployment, and reports their state."""

    def __init__(self, observer: GraphObserver, states: KeyStates) -> None:
        self._observer, self._states = observer, states
        self._backends: dict[str, GraphBackend] = {
            backend.name: backend for backend in (GroveBackend(), LwsBackend())
        }

    async def observe(self, key: GraphKey) -> GraphSnapshot | None:
        """The snapshot of a deployment; of one in a terminating namespace, nothing is planned."""
        snapshot = await self._observer.observe(key)
        about = self.about(snapshot) if snapshot is not None else None
        terminating = about is not None and is_in_terminating_namespace(self._states, key, about.uid)
        return GraphSnapshot(None) if terminating else snapshot

    def plan(self, snapshot: GraphSnapshot, now: float) -> Plan:
        return plan_graph(snapshot, self._backends, now)

    def with_errors(self, snapshot: GraphSnapshot, plan: Plan, result: PassResult, now: float) -> Plan:
        message = "; ".join(dict.fromkeys(map(str, result.outcome.errors)))
        return with_error(plan, snapshot, message, now) if message else plan

    def about(self, snapshot: GraphSnapshot) -> ObjectRef | None:
        return reference(snapshot.stored) if snapshot.stored is not None else None


async def serve(add: Callable[[], None], client: Client, graph_caches: GraphCaches) -> None:
    """Reconcile deployments as soon as their caches are synced, until cancelled; not at all if Dynamo's own
    operator serves them."""
    await graph_caches.synced()
    if why := await _checked_conflict(client):
        log.error("not serving", key=GRAPHS.label, action="ignore", reason=why)
    else:
        add()
        log.info("serving", key=GRAPHS.label, action="lead", reason="dynamo.enabled")
    await asyncio.Event().wait()


async def _checked_conflict(client: Client) -> str:
    """Why deployments must not be served; empty if nothing speaks against it. A check that fails is repeated
    with back-off: until it succeeds, it is not known which operator serves them."""
    backoff, rng, failures = Backoff(*timing.DYNAMO_CONFLICT_BACKOFF), random.Random(), 0  # noqa: S311 - jitter
    while True:
        try:
            return await dynamo_operator_conflict(client)
        except KubeError as problem:
            pause = backoff.pause(failures, rng)
            failures += 1
            log.warning("not serving yet", key=GRAPHS.label, action="retry", reason=str(problem), pause=pause)
            await asyncio.sleep(pause)
