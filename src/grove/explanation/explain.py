"""Explains objects of a cluster whose state was read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property

from msgspec.structs import replace

from grove import timing
from grove.api.formats.natural_order import natural_order
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.kinds import GRAPHS, kinds_of
from grove.cluster_state.model import ClusterState, UnreadKind
from grove.cluster_state.operator_setup import OperatorSetup, new_caches, operator_setup
from grove.dry_run.operator import DryOperator
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.events import Event
from grove.explanation.findings import find_reasons, is_whole_set, state_text, waiting_replicas, waits
from grove.explanation.history import ContainerPod, container_views, event_views
from grove.explanation.model import Explanation, ObjectRef, ReasonView
from grove.explanation.placement import PlanFindings
from grove.explanation.subtree import Objects, Subtree, find, subtree
from grove.kube.client.resource import LEASES, PODS
from grove.kube.errors import ConfigError
from grove.kube.leader.lease import Lease, is_held
from grove.operator.caches.resources import resource_of
from grove.plan.timestamps import rfc3339, timestamp
from grove.reasons.codes import ReasonCode
from grove.reasons.model import WaitReason

SETS = resource_of(PodCliqueSet.KIND)


class Preparation:
    """What is known before the cluster is read: the operator that is assumed, and what it reads."""

    def __init__(self, lease: str) -> None:
        self._setup = operator_setup()
        self.kinds = kinds_of(new_caches(self._setup), lease)

    def explainer(self, state: ClusterState, events: Sequence[Event] = ()) -> Explainer:
        """Explains the objects of a state."""
        return Explainer(state, self._setup, events)


class Explainer:
    """Explains objects of one state. Must be used in a running event loop, as the caches are."""

    def __init__(self, state: ClusterState, setup: OperatorSetup, events: Sequence[Event] = ()) -> None:
        self._state, self._events, self._now = state, events, state.taken_at
        _reject_unreadable(state)
        self._operator = operator = DryOperator(state, setup, self._now)
        caches = operator.caches
        self.objects = Objects(
            tuple(state.objects(GRAPHS, DynamoGraphDeployment)),
            tuple(caches.sets),
            tuple(caches.groups),
            tuple(caches.cliques),
            tuple(caches.gangs),
            tuple(caches.pods),
        )
        self._plans = PlanFindings(operator) if operator.view.synced else None
        self._leases = _leases(state)

    def unplanned(self) -> tuple[UnreadKind, ...]:
        """The sets that could not be planned for what has been explained, and why."""
        return self._operator.unplanned_sets()

    def explain(self, written: str, namespace: str) -> Explanation:
        """Explain the object that a user has named. Raises UnknownObject."""
        return self._explain(subtree(self.objects, find(self.objects, written, namespace)))

    def waiting(self, namespace: str | None, *, details: bool = True) -> list[Explanation]:
        """Explain all sets that wait, of one namespace or of all. `details`: not only with their reasons."""
        found = []
        for each in sorted(self.objects.sets, key=lambda each: (each.metadata.namespace, each.metadata.name)):
            meta = each.metadata
            if namespace is None or meta.namespace == namespace:
                tree = subtree(self.objects, ObjectRef(PodCliqueSet.KIND.name, meta.name, meta.namespace))
                if waits(tree):
                    found.append(self._explain(tree, details=details))
        return found

    def _explain(self, tree: Subtree, *, details: bool = True) -> Explanation:
        namespace = tree.about.namespace
        if not waits(tree):
            return Explanation(tree.about, state_text(tree), False)
        unplaced = self._unplaced(tree)
        reasons = find_reasons(tree, unplaced, self._planned(tree), self._operator_reason(tree))
        views = tuple(_view(each, namespace) for each in reasons)
        found = Explanation(tree.about, state_text(tree), True, views)
        return self._with_details(found, tree, sorted(unplaced, key=natural_order)) if details else found

    def _with_details(self, found: Explanation, tree: Subtree, unplaced: list[str]) -> Explanation:
        """The explanation with the domains of gangs without a place, states of containers, and events."""
        namespace, rows = tree.about.namespace, timing.EXPLAINED_ROWS
        detailed = unplaced[: timing.EXPLAINED_GANGS]
        gangs = self._plans.details(namespace, detailed) if self._plans is not None else []
        containers = list(container_views(tree, self._containers.get(namespace, ())))
        events = event_views(tree, self._events, self._now)
        left = {
            "gangs": len(unplaced) - len(detailed),
            "containers": len(containers) - rows,
            "events": len(events) - rows,
        }
        return replace(
            found,
            gangs=tuple(gangs),
            containers=tuple(containers[:rows]),
            events=tuple(events[-rows:]),
            more={what: count for what, count in left.items() if count > 0},
        )

    @cached_property
    def _containers(self) -> dict[str, list[ContainerPod]]:
        """The pods with the messages of their containers, by namespace."""
        found: dict[str, list[ContainerPod]] = {}
        for pod in self._state.objects(PODS, ContainerPod):
            found.setdefault(pod.metadata.namespace, []).append(pod)
        return found

    def _unplaced(self, tree: Subtree) -> dict[str, WaitReason]:
        """By gang that belongs to an object, why there is no place for it."""
        if self._plans is None or tree.workload is None:
            return {}
        found = self._plans.reasons(tree.workload)
        if is_whole_set(tree):
            return found
        names = {gang.metadata.name for gang in tree.gangs}
        return {name: reason for name, reason in found.items() if name in names}

    def _planned(self, tree: Subtree) -> list[WaitReason]:
        """What an operator would write into conditions now; nothing if nodes cannot be listed."""
        if self._plans is None or tree.workload is None:
            return []
        replicas = waiting_replicas(tree)[: timing.EXPLAINED_REPLICAS]
        wanted, found = tree.parts(), self._plans.conditions(tree.workload, replicas)
        return [each for each in found if each.about in wanted]

    def _operator_reason(self, tree: Subtree) -> WaitReason | None:
        """That no operator leads: its Lease is not held, or it has none and the set was never reconciled."""
        if self._leases is None:
            return None
        at = datetime.fromtimestamp(self._now, UTC)
        if any(is_held(lease, at) for lease in self._leases):
            return None
        if not self._leases:
            if _was_reconciled(tree):  # by an operator with another Lease, or without leader election
                return None
            return WaitReason(ReasonCode.NO_OPERATOR_LEADING, "there is no Lease of an operator")
        last = max(self._leases, key=lambda each: timestamp(each.spec.renew_time))
        name = f"{last.metadata.namespace}/{last.metadata.name}"
        since = timestamp(last.spec.renew_time)
        return WaitReason(
            ReasonCode.NO_OPERATOR_LEADING,
            f"Lease {name} was not renewed since {last.spec.renew_time}",
            since=since,
        )


def _was_reconciled(tree: Subtree) -> bool:
    if tree.workload is None:
        return False
    status = tree.workload.status
    return bool(status.observed_generation or status.conditions or status.last_errors)


def _view(reason: WaitReason, namespace: str) -> ReasonView:
    about = ObjectRef(reason.about.kind, reason.about.name, namespace) if reason.about is not None else None
    since = rfc3339(reason.since) if reason.since else ""
    return ReasonView(reason.code, reason.message or reason.summary, reason.advice, about, since)


def _reject_unreadable(state: ClusterState) -> None:
    """Raises ConfigError if there are no sets to explain because they cannot be read."""
    sets = state.kind(SETS)
    if not sets.served:
        raise ConfigError(
            f"{state.source} does not serve PodCliqueSets: "
            "install the CRDs with grove crds | kubectl apply --server-side -f -"
        )
    if sets.problem:
        raise ConfigError(f"{sets.problem}: ask for the right, or choose a namespace with -n")


def _leases(state: ClusterState) -> tuple[Lease, ...] | None:
    """The Leases of operators; None if they are not known: the operator may be in a namespace that was not
    read."""
    kind, found = state.kind(LEASES), tuple(state.objects(LEASES, Lease))
    return found if kind.listed and (found or not kind.namespace) else None
