"""The state of the placement key: the gangs that have pods without a node, and what is decided for them.

Plans of replicas report their demands here and read the decisions; only rounds of placement decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from grove import timing
from grove.api.configuration.default_scheduler import PlacementSettings
from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.types.kubernetes_objects import PriorityClass
from grove.api.types.pod import Pod
from grove.operator.caches.cluster_pods import ClusterPod
from grove.operator.keys import ReplicaKey
from grove.operator.metrics.unmet_demand import UnmetDemand
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.cluster.in_flight import PodsInFlight
from grove.plan.placement.assignment import Assignment, GangName, Placements, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.decision import reservations
from grove.plan.placement.demand import Demand, FabricDomain, pod_name
from grove.plan.placement.domain_members import DomainMembers, NodesByDomain, assigned_nodes
from grove.plan.placement.predecessors import with_present_predecessors
from grove.plan.placement.rounds.next_state import after_failure
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang, RoundResult
from grove.topology.placement.model import Amounts

SCHEDULERS = frozenset({DEFAULT_SCHEDULER})
"""The schedulers for which gangs are placed."""


class PlacementState:
    """The gangs of the whole cluster that are placed by the operator."""

    def __init__(
        self,
        view: ClusterView,
        *,
        has_quota: Callable[[str], bool],
        priority_class: Callable[[str], PriorityClass | None],
        scheduler: Callable[[], str | None],
        settings: PlacementSettings,
        clock: Callable[[], float],
    ) -> None:
        self.capacity = ClusterCapacity()
        self._view, self._has_quota, self._priority_class = view, has_quota, priority_class
        self._scheduler, self._settings, self._clock = scheduler, settings, clock
        self._states: dict[GangName, GangState] = {}
        self._open: set[GangName] = set()
        """Gangs for which every change in the cluster matters: they, or some of their pods, wait or are
        nominated."""
        self._settled: set[GangName] = set()
        """Gangs that the scheduler is binding: only changes of their own pods matter."""
        self._urgent: set[GangName] = set()
        """Those of them that are not decided on, or are nominated: a change is read at once."""
        self._unmet = UnmetDemand()
        self._by_domain: dict[FabricDomain, set[GangName]] = {}
        """The gangs that have pods of a fabric domain to place."""
        self._owners: dict[GangName, ReplicaKey] = {}
        self._gangs: dict[ReplicaKey, frozenset[GangName]] = {}
        self._asked: dict[ReplicaKey, float] = {}
        """When a replica asked for the first decision that it still waits for."""
        self._gone: set[GangName] = set()
        self._delayed = (False, False)
        self._expected: set[ReplicaKey] = set()
        self._expected_until = 0.0
        self._changed: set[GangName] = set()

    def of(self, key: ReplicaKey, pods: Iterable[Pod] = (), levels: Collection[str] = ()) -> Placements:
        """What is decided for a replica's gangs, and the labels of the nodes of its pods: at least those of
        the levels."""
        decisions = {
            gang.name: decision
            for gang in self._gangs.get(key, ())
            if gang in self._states and (decision := self._states[gang].decision) is not None
        }
        view = self._view
        if len(decisions) == len(self._gangs.get(key, ())):
            self._asked.pop(key, None)
        late = key in self._asked and self._clock() >= self._asked[key] + timing.SUCCESSOR_WAIT
        problem = view.problem if view.is_forbidden else ""
        labels = self._node_labels(pods) if view.require(levels) else None
        return Placements(decisions, problem, labels, delay=view.delay, late=late)

    def is_decided(self, key: ReplicaKey) -> bool:
        """Whether it is decided where some of a replica's gangs go, or that they wait."""
        return any(
            gang in self._states and self._states[gang].decision is not None
            for gang in self._gangs.get(key, ())
        )

    def _node_labels(self, pods: Iterable[Pod]) -> dict[str, Mapping[str, str]]:
        names = {pod.spec.node_name for pod in pods} - {""}
        return {name: node.labels for name in names if (node := self._view.node(name)) is not None}

    def update(self, key: ReplicaKey, demands: Iterable[Demand], *, complete: bool = True) -> bool:
        """Take over the demands of a replica. `complete`: whether these are all that it has. Returns whether
        there is something to decide."""
        wanted = {demand.gang: demand for demand in demands}
        ended = self._gangs.get(key, frozenset()) - wanted.keys()
        for gang in ended:
            self._drop(gang, key)
        if wanted:
            self._gangs[key] = frozenset(wanted)
            self._asked.setdefault(key, self._clock())
        else:
            self._gangs.pop(key, None)
            self._asked.pop(key, None)
        undecided = False
        for gang, demand in wanted.items():
            self._owners[gang] = key
            undecided |= self._update(gang, demand)
        all_known = complete and self._reported(key)
        # What is reserved for a gang that ended is free for gangs that wait.
        return undecided or all_known or (bool(ended) and bool(self._open))

    def expect(self, replicas: Iterable[ReplicaKey], until: float) -> None:
        """Decide on nothing before these replicas have reported, or the time is over: a process that becomes
        the leader must know the gangs whose pods are about to be bound."""
        self._expected, self._expected_until = set(replicas), until

    def _reported(self, key: ReplicaKey) -> bool:
        """A replica has reported. Returns whether it is the last one that was expected."""
        if key not in self._expected:
            return False
        self._expected.discard(key)
        return not self._expected and bool(self._open)

    def _update(self, gang: GangName, demand: Demand) -> bool:
        state = self._states.get(gang)
        demand = self._with_present_predecessors(demand, state.demand if state is not None else None)
        if state is not None and state.demand == demand:
            return state.decision is None
        self._gone.discard(gang)
        self._changed.add(gang)
        if state is None or not _covers(state, demand):
            self._store(gang, self._renewed(state, demand))
            return True
        self._store(gang, replace(state, demand=demand))
        return gang in self._open

    def _renewed(self, state: GangState | None, demand: Demand) -> GangState:
        """The state of a gang that must be decided on again."""
        if state is None:
            return GangState(demand)
        if isinstance(state.decision, Assignment) and state.decision.failed:
            return after_failure(state, demand, self._clock())
        return replace(
            state,
            demand=demand,
            decision=None,
            fits_if_empty=True,
            backlog=None,
            retry_at=0.0,
            stuck_since=0.0,
            refused=None,
            half_bound=False,
        )

    def states(self) -> dict[GangName, GangState]:
        """The gangs that have pods without a node, and what is decided for them."""
        return dict(self._states)

    def reserved(self) -> dict[str, Counter[str]]:
        """What is reserved for gangs whose pods are not bound yet, by node; held nodes count as well."""
        found: dict[str, Counter[str]] = {}
        for state in self._states.values():
            if state.decision is not None and state.decision.nodes:
                for node, amounts in self._reservations(state, state.decision.nodes).items():
                    found.setdefault(node, Counter()).update(amounts)
        return found

    def _reservations(self, state: GangState, assigned: Mapping[PodSlot, str]) -> dict[str, Amounts]:
        gang, observed = self._observed(state), state.demand.unbound
        unbound = {pod.slot for pod in observed if pod.name not in gang.bound}
        nodes = {slot: node for slot, node in assigned.items() if slot in unbound and node}
        return reservations(state.demand, gang.requests, nodes)

    @property
    def listed(self) -> bool:
        """Whether nodes and pods are listed, so that gangs can be decided on."""
        return self._view.synced

    def newly_delayed(self) -> set[ReplicaKey]:
        """The replicas whose gangs wait for a cluster that cannot be listed, once it is known why, and once
        it is known that a right is missing."""
        before, self._delayed = self._delayed, (bool(self._view.delay), self._view.is_forbidden)
        return set(self._gangs) if any(self._delayed) and self._delayed != before else set()

    @property
    def round_delay(self) -> float | None:
        """How soon a change in the cluster is read: at once if a gang is nominated, later if gangs only wait,
        as many pods may end at once. None: no gang waits."""
        if not self._open and not self._settled:
            return None
        return 0.0 if self._urgent else timing.PLACEMENT_INTERVAL

    @property
    def is_large(self) -> bool:
        """Whether a round may take long: there are many nodes, or many gangs to decide on, or the search for
        one of them took long before."""
        if self._view.size * max(1, len(self._open)) > timing.LARGE_ROUND:
            return True
        return any(self._states[gang].took_long for gang in self._open)

    def reset(self) -> None:
        """Read the whole cluster again: a round has failed, and the capacity may be incomplete."""
        self.capacity = ClusterCapacity()
        self._view.mark_all_changed()
        self._changed.update(self._states)

    def changes(self) -> ClusterChanges | None:
        """What the next round reads; None if nothing is to be done. While nothing can be decided, it has a
        time at which that is checked again: no event says why a cluster cannot be listed."""
        view, now = self._view, self._clock()
        if not (self._gone or self._changed or self._open or self._settled):
            return None
        if not view.synced:
            return ClusterChanges({}, (), blocked_until=now + timing.PLACEMENT_LIST_CHECK)
        if self._expected and now < self._expected_until:
            return ClusterChanges({}, (), blocked_until=self._expected_until)
        nodes = {
            name: ObservedNode(view.node(name), view.use_by_priority(name))
            for name in view.take_changed_nodes()
        }
        changed = self._changed | self._open | {GangName(*each) for each in view.take_changed_gangs()}
        states = [self._without_gone_predecessors(gang) for gang in changed if gang in self._states]
        known = [state for state in states if view.require(state.demand.label_keys)]
        in_flight = PodsInFlight(view.undecided(SCHEDULERS), view.could_go)
        gangs = [self._observed(state, in_flight) for state in known]
        self._settle(known)
        domains = {each.domain for state in known for each in state.demand.domains}
        gone, self._gone = tuple(self._gone), set()
        # Those whose labels are not listed yet are read in a later round.
        self._changed = {state.demand.gang for state in states} - {state.demand.gang for state in known}
        return ClusterChanges(
            nodes,
            gangs,
            gone,
            unbound=tuple(pod.profile.requests for pod in view.unbound_foreign(SCHEDULERS)),
            visible_after=self._settings.visible_after,
            hold_after=self._settings.hold_after,
            domain_nodes={domain: view.nodes_of_domain(*domain) for domain in domains},
            assigned_in_domains=self._assigned_in(domains),
            scheduler=self._scheduler(),
        )

    def domain_nodes(self, demand: Demand) -> NodesByDomain:
        """The nodes with pods of the fabric domains of a gang, and those that are assigned to other gangs."""
        domains = {each.domain for each in demand.domains}
        bound = {domain: self._view.nodes_of_domain(*domain) for domain in domains}
        return DomainMembers(bound, self._assigned_in(domains)).of(demand)

    def _assigned_in(self, domains: Iterable[FabricDomain]) -> dict[GangName, NodesByDomain]:
        found: dict[GangName, NodesByDomain] = {}
        for gang in {gang for domain in domains for gang in self._by_domain.get(domain, ())}:
            state = self._states[gang]
            bound = {pod.name for pod in self._pods(state.demand) if pod.node}
            found[gang] = assigned_nodes(state.demand, state.decision, bound)
        return found

    def _settle(self, states: Iterable[GangState]) -> None:
        """Do not read these gangs again before their pods change, as far as nothing else matters to them:
        while a thousand gangs start, each round would read all of them. A change may also have the effect
        that every change matters again: the scheduler preempts others for one of their pods."""
        unfinished = self._open | self._settled
        for state in states:
            gang = state.demand.gang
            if gang not in unfinished:
                continue
            settled = is_settled(state, self._pods(state.demand))
            (self._settled if settled else self._open).add(gang)
            (self._open if settled else self._settled).discard(gang)

    def _pods(self, demand: Demand) -> list[ClusterPod]:
        """The existing pods of a gang, as the watch of all pods shows them."""
        found = (self._view.pod(demand.gang.namespace, each.name) for each in demand.pods if each.name)
        return [pod for pod in found if pod is not None]

    def _with_present_predecessors(self, demand: Demand, before: Demand | None = None) -> Demand:
        def node_of(name: str) -> str:
            found = self._view.pod(demand.gang.namespace, name)
            return found.node if found is not None else ""

        return with_present_predecessors(demand, before, node_of)

    def _without_gone_predecessors(self, gang: GangName) -> GangState:
        """The state of a gang, stored with the demand that the round reads: the result of the round is for
        that demand."""
        state = self._states[gang]
        demand = self._with_present_predecessors(state.demand)
        if demand is not state.demand:
            state = self._states[gang] = replace(state, demand=demand)
        return state

    def _observed(self, state: GangState, in_flight: PodsInFlight | None = None) -> ObservedGang:
        demand, view = state.demand, self._view
        classes = [self._priority_class(name) for name in demand.priority_classes]
        priorities = [each.value if each is not None else 0 for each in classes]
        found = self._pods(demand)
        refused = [pod for pod in found if self._is_refused(pod)]
        return ObservedGang(
            state,
            requests=_with_devices(demand, {pod.name: pod.profile.requests for pod in found if not pod.node}),
            nominations={pod.name: pod.nominated_node for pod in found if pod.nominated_node},
            bound=frozenset(pod.name for pod in found if pod.node),
            stuck=not all(map(self._has_room, refused)),
            refused=bool(refused),
            victims_leave_until=max(
                (view.leaving_until(p.nominated_node) for p in found if not p.node and not p.profile.gated),
                default=0.0,
            ),
            in_flight=_in_flight(state, in_flight, {pod.uid for pod in found}),
            priority=min((pod.profile.priority for pod in found), default=min(priorities, default=0)),
            may_preempt=not any(each is not None and each.preemption_policy == "Never" for each in classes),
            has_quota=self._has_quota(demand.gang.namespace),
        )

    def _is_refused(self, pod: ClusterPod) -> bool:
        """Whether the scheduler has found no node for a released pod. While pods that it has preempted leave
        the node of its nomination, it is not tried again."""
        if pod.node or pod.profile.gated or not pod.profile.unschedulable:
            return False
        return not pod.nominated_node or self._view.leaving_until(pod.nominated_node) <= self._clock()

    def _has_room(self, pod: ClusterPod) -> bool:
        """Whether the node that a pod is nominated to has room for it: the scheduler binds it there when it
        tries again, unless something else is missing."""
        node = pod.nominated_node
        return bool(node) and self._view.has_room(node, pod.profile.requests)

    def record(self, result: RoundResult) -> set[ReplicaKey]:
        """Store the result of a round. Returns the replicas whose plans apply it."""
        owners: set[ReplicaKey] = set()
        for gang, state in result.changed.items():
            known = self._states.get(gang)
            if known is None:
                self._gone.add(gang)  # dropped meanwhile: its reservations end with the next round
                continue
            if known.demand is not state.demand and not _covers(state, known.demand):
                continue  # it asks for something else meanwhile
            self._store(gang, replace(state, demand=known.demand))
            if known.decision != state.decision:
                owners.add(self._owners[gang])
        return owners

    def _store(self, gang: GangName, state: GangState) -> None:
        self._forget_domains(gang)
        for each in state.demand.domains:
            self._by_domain.setdefault(each.domain, set()).add(gang)
        self._states[gang] = state
        self._settled.discard(gang)
        if isinstance(state.decision, Assignment) and not _is_open(state.decision, state.demand):
            self._open.discard(gang)
        else:
            self._open.add(gang)
        self._unmet.set(gang, state.demand if isinstance(state.decision, Waiting) else None)
        decision = state.decision
        releasing = isinstance(decision, Assignment) and (decision.gated or decision.preempting)
        if decision is None or releasing:
            self._urgent.add(gang)
        else:
            self._urgent.discard(gang)

    def _drop(self, gang: GangName, key: ReplicaKey) -> None:
        if self._owners.get(gang) != key:
            return  # a gang of another set has the same name
        self._forget_domains(gang)
        del self._states[gang], self._owners[gang]
        self._changed.discard(gang)
        self._open.discard(gang)
        self._settled.discard(gang)
        self._urgent.discard(gang)
        self._unmet.set(gang, None)
        self._gone.add(gang)

    def _forget_domains(self, gang: GangName) -> None:
        state = self._states.get(gang)
        for each in state.demand.domains if state is not None else ():
            gangs = self._by_domain[each.domain]
            gangs.discard(gang)
            if not gangs:
                del self._by_domain[each.domain]


def _with_devices(demand: Demand, requests: dict[str, Amounts]) -> dict[str, Amounts]:
    """The requests of pods as admitted, with the devices that they claim."""
    if devices := demand.devices:
        for pod in demand.pods:
            if pod.name in requests and pod.slot.clique in devices:
                requests[pod.name] = {**requests[pod.name], **devices[pod.slot.clique]}
    return requests


def _in_flight(state: GangState, pods: PodsInFlight | None, own: Collection[str]) -> frozenset[str]:
    """The pods that the scheduler may be about to bind to the nodes of a nominated gang."""
    if pods is None or not isinstance(state.decision, Assignment) or not state.decision.gated:
        return frozenset()
    return pods.to(state.decision.nodes.values(), own)


def _covers(state: GangState, demand: Demand) -> bool:
    """Whether what was decided still answers a demand: it has a node for each pod that has none, and these
    pods may still go to any node of the same kind. Existing pods beyond the minimum may wait for nodes."""
    decision = state.decision
    if not isinstance(decision, Assignment):
        return False
    if decision.gated and state.demand.kinds != demand.kinds:
        return False
    if decision.failed:
        return any(pod.name for pod in demand.pods)  # until its pods are no longer members
    missing = [pod for pod in demand.unbound if pod.slot not in decision.nodes]
    if not missing:
        return True
    extras = demand.extras
    return all(pod.name and pod_name(pod.slot) in extras for pod in missing)


def _is_open(decision: Assignment, demand: Demand) -> bool:
    """Whether a gang with nodes still depends on changes in the cluster: not all of it is released, it has
    never been complete, or has pods beyond the minimum without nodes."""
    if decision.gated or decision.preempting:
        return True
    complete = demand.was_scheduled or decision.in_part or decision.failed
    return not complete or any(pod.slot not in decision.nodes for pod in demand.unbound)


def is_settled(state: GangState, pods: Iterable[ClusterPod]) -> bool:
    """Whether only changes of its own pods matter to a gang: all of them may be bound, none has to be
    nominated, none is stuck, and the scheduler has preempted no other pod for them."""
    decision = state.decision
    if not isinstance(decision, Assignment) or decision.nominated or decision.failed:
        return False
    if state.stuck_since or state.refused is not None:
        return False
    if any(pod.slot not in decision.nodes for pod in state.demand.unbound):
        return False
    return not any(pod.nominated_node for pod in pods if not pod.node)
