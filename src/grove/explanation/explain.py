"""Explains objects of a cluster whose state was read."""

from __future__ import annotations

from collections.abc import Sequence
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
from grove.explanation.findings import (
    find_reasons,
    reason_view,
    state_text,
    waiting_replicas,
    waits,
)
from grove.explanation.history import ContainerPod, container_views, event_views
from grove.explanation.model import Explanation, ObjectRef
from grove.explanation.operator_lease import known_leases, operator_reason
from grove.explanation.placement import PlanFindings
from grove.explanation.subtree import Objects, Subtree, find, is_whole_set, subtree
from grove.kube.client import label_selector
from grove.kube.client.resource import LEASES, PODS
from grove.kube.client.undecodable import Undecodable
from grove.kube.errors import ConfigError
from grove.kube.leader.lease import Lease
from grove.operator.caches.resources import resource_of
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
        self._events, self._now = events, state.taken_at
        _reject_unreadable(state)
        self._operator = operator = DryOperator(state, setup, self._now)
        caches, graphs, leases = operator.caches, list[Undecodable](), list[Undecodable]()
        self.objects = Objects(
            tuple(state.objects(GRAPHS, DynamoGraphDeployment, graphs)),
            tuple(caches.sets),
            tuple(caches.groups),
            tuple(caches.cliques),
            tuple(caches.gangs),
            tuple(caches.pods),
        )
        self._plans = PlanFindings(operator) if operator.view.synced else None
        known = known_leases(state.kind(LEASES), state.objects(LEASES, Lease, leases))
        self._leases = None if leases else known
        self.state = operator.state.with_skipped({GRAPHS: graphs, LEASES: leases})
        """The state that it reads, with the names of objects that it skips."""

    def unplanned(self) -> tuple[UnreadKind, ...]:
        """The sets that could not be planned for what has been explained, and why."""
        return self._operator.unplanned_sets()

    def explain(self, written: str, namespace: str) -> Explanation:
        """Explain the object that a user has named. Raises UnknownObject."""
        return self._explain(subtree(self.objects, find(self.objects, written, namespace)))

    def waiting(
        self, namespace: str | None, selector: str = "", *, details: bool = True
    ) -> list[Explanation]:
        """Explain all sets that wait, of one namespace or of all, with these labels. `details`: not only with
        their reasons."""
        found, selected = [], label_selector.parse(selector)
        for each in sorted(self.objects.sets, key=lambda each: (each.metadata.namespace, each.metadata.name)):
            meta = each.metadata
            if namespace in (None, meta.namespace) and selected(meta.labels):
                tree = subtree(self.objects, ObjectRef(PodCliqueSet.KIND.name, meta.name, meta.namespace))
                if waits(tree):
                    found.append(self._explain(tree, details=details))
        return found

    def _explain(self, tree: Subtree, *, details: bool = True) -> Explanation:
        namespace = tree.about.namespace
        if not waits(tree):
            return Explanation(tree.about, state_text(tree), False)
        unplaced = self._unplaced(tree)
        reasons = find_reasons(
            tree, unplaced, self._planned(tree), operator_reason(self._leases, tree.workload, self._now)
        )
        views = tuple(reason_view(each, namespace) for each in reasons)
        found = Explanation(tree.about, state_text(tree), True, views)
        if not details:
            return found
        held = self._plans.held(namespace) if self._plans is not None else set()
        names = {*unplaced, *(gang.metadata.name for gang in tree.gangs if gang.metadata.name in held)}
        return self._with_details(found, tree, sorted(names, key=natural_order))

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
        for pod in self.state.objects(PODS, ContainerPod):
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
