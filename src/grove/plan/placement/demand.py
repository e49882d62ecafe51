"""What a gang asks for: its units and pods in the terms of the solver, and how urgent it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from grove.plan.placement.assignment import GangName, Pins, PodSlot
from grove.schedulers.podgang import pack_key
from grove.topology.placement.eligibility import selector_keys
from grove.topology.placement.model import Amounts, Pod, PodShape, Requirement, Term, Toleration, Unit
from grove.topology.placement.needs.devices import is_device
from grove.topology.placement.needs.requests import pod_requests
from grove.topology.placement.needs.volumes import Terms, both

Body = dict[str, Any]


class FabricDomain(NamedTuple):
    """Namespace and name of a fabric domain."""

    namespace: str
    name: str


class PackedDomain(Struct, frozen=True):
    """A fabric domain whose pods go to nodes of one partition of the fabric."""

    domain: FabricDomain
    key: str
    """The label of nodes with their partition."""
    required: bool
    """Otherwise pods for which the partition has no room go elsewhere."""


class WantedPod(Struct, frozen=True, gc=False):
    """A member of a gang."""

    slot: PodSlot
    name: str = ""
    """The name of the pod if it exists."""
    node: str = ""
    """Where it is bound."""
    gated: bool = True
    """Whether it has our scheduling gate, or does not exist yet."""
    predecessor: str = ""
    """The node of the pod that it replaces, as long as that pod exists: the successor may have its room."""
    predecessor_name: str = ""
    """The name of that pod."""


class WantedClique(Struct, frozen=True):
    """The members of a gang that belong to one clique."""

    name: str
    min_available: int
    shape: PodShape
    pods: tuple[WantedPod, ...]


class Fallback(Struct, frozen=True):
    """Another constraint, for a gang that has waited for a while."""

    attempt: int
    after: float
    """How many seconds after the gang began to wait it is tried."""
    unit: Unit
    levels: tuple[str, ...]


class Demand(Struct, frozen=True):
    """A gang that has pods without a node."""

    gang: GangName
    unit: Unit
    """The gang as the solver reads it; its pods have the names of `pod_name`."""
    pods: tuple[WantedPod, ...]
    levels: tuple[str, ...] = ()
    """The label keys of its topology, from broad to narrow."""
    scheduler: str = ""
    priority_classes: tuple[str, ...] = ()
    """The PriorityClasses of its pods; empty for the default class."""
    created: str = ""
    """When the PodGang was created; empty if it does not exist yet."""
    attempt: int = 0
    """The constraint that `unit` and `levels` are of: 0, or the fallback by which the gang was placed."""
    fallbacks: tuple[Fallback, ...] = ()
    pinned: Mapping[str, Pins] = {}
    """By clique, the pins that the PodGang records."""
    further: tuple[Unit, ...] = ()
    """Gangs that are declared and follow this one into its domain."""
    looks_ahead: bool = False
    """Whether it goes first to a domain with room for its pods beyond the minimum, too."""
    was_scheduled: bool = False
    """Whether all of it had nodes at some time. From then on the termination delay decides about it."""
    constrained: bool = False
    """Whether it has a required level or partition: such a gang is never released in part."""
    grouped: bool = False
    """Whether its pods join a group of the scheduler, which it considers only once the minimum is released.
    Pods beyond the minimum may be created later."""
    domains: tuple[PackedDomain, ...] = ()
    """The fabric domains that are packed, in the order of the partitions of pod shapes."""

    def by(self, fallback: Fallback) -> Demand:
        """The same gang with another constraint."""
        return replace(self, unit=fallback.unit, levels=fallback.levels, attempt=fallback.attempt, pinned={})

    def by_attempt(self, attempt: int) -> Demand:
        """The same gang with the constraint of an attempt."""
        return next((self.by(each) for each in self.fallbacks if each.attempt == attempt), self)

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of nodes that a decision reads."""
        shapes = {id(pod.shape): pod.shape for unit in walk(self.unit) for pod in unit.pods}
        levels = (each.levels for each in self.fallbacks)
        return frozenset(self.levels).union(
            *levels,
            *map(selector_keys, shapes.values()),
            *self.pinned.values(),
            (each.key for each in self.domains),
        )

    @property
    def kinds(self) -> tuple[object, ...]:
        """What decides where each clique may go: levels, required levels, partitions and shapes of pods."""
        return (
            self.levels,
            self.domains,
            *(
                (unit.name, unit.required, unit.pods[0].shape if unit.pods else None)
                for unit in walk(self.unit)
            ),
        )

    @property
    def devices(self) -> dict[str, Amounts]:
        """By clique, the devices that each pod needs: no admitted pod shows them in its requests."""
        first = {unit.name: unit.pods[0].shape.requests for unit in walk(self.unit) if unit.pods}
        found = {
            name: {resource: amount for resource, amount in requests.items() if is_device(resource)}
            for name, requests in first.items()
        }
        return {name: amounts for name, amounts in found.items() if amounts}

    @property
    def unbound(self) -> Iterator[WantedPod]:
        return (pod for pod in self.pods if not pod.node)

    @property
    def extras(self) -> frozenset[str]:
        """The names for the solver of pods beyond the minimum of their cliques."""
        return frozenset(pod.name for unit in walk(self.unit) for pod in unit.pods if pod.extra)

    @property
    def asks(self) -> bool:
        """Whether a pod waits for its node; otherwise the gang is only counted until its pods are bound."""
        return any(pod.gated for pod in self.unbound)

    @property
    def replaces_pods(self) -> bool:
        """Whether it has run: pods that it asks for take the places of others, also if all of them are
        replaced. After a gang termination it starts over."""
        return self.was_scheduled or any(pod.node or pod.predecessor for pod in self.pods)

    @property
    def former_domains(self) -> list[Pins]:
        """The labels of the domains in which the pods that it asks for are replaced, by clique: no labels of
        a clique that may use any node, or of a gang of which pods run."""
        if any(pod.node for pod in self.pods):
            return [{}]
        return [self.pinned.get(clique, {}) for clique in {pod.slot.clique: None for pod in self.unbound}]


def pod_name(slot: PodSlot) -> str:
    """The name of a pod for the solver."""
    return f"{slot.clique}/{slot.number}"


def walk(unit: Unit) -> Iterator[Unit]:
    """A unit and all units inside of it."""
    yield unit
    for part in unit.parts:
        yield from walk(part)


def gang_unit(gang: Body, cliques: Iterable[WantedClique]) -> Unit:
    """A gang, its group replicas and its cliques as units. `gang` is the body of the PodGang."""
    by_name = {each.name: each for each in cliques}
    groups = {group["name"]: group for group in gang["spec"]["podgroups"]}
    parts: list[Unit] = []
    placed: set[str] = set()
    for config in gang["spec"].get("topologyConstraintGroupConfigs", ()):
        members = [name for name in config["podGroupNames"] if name in by_name]
        placed.update(members)
        parts.append(
            _unit(config["name"], config, tuple(clique_unit(by_name[n], groups[n]) for n in members))
        )
    parts += (clique_unit(each, groups[name]) for name, each in by_name.items() if name not in placed)
    return _unit(gang["metadata"]["name"], gang["spec"], tuple(parts))


def _unit(name: str, constrained: Body, parts: tuple[Unit, ...]) -> Unit:
    return Unit(name, pack_key(constrained, "required"), pack_key(constrained, "preferred"), parts)


def clique_unit(wanted: WantedClique, group: Body | None = None) -> Unit:
    """The pods of a clique, with the constraint of its entry in the PodGang. Bound pods count towards the
    minimum first, the rest by their index."""
    group = group or {}
    missing = wanted.min_available - sum(bool(pod.node) for pod in wanted.pods)
    pods: list[Pod] = []
    for pod in wanted.pods:
        extra = not pod.node and missing <= 0
        missing -= not pod.node
        pods.append(Pod(pod_name(pod.slot), wanted.shape, extra, pod.node))
    required, preferred = pack_key(group, "required"), pack_key(group, "preferred")
    return Unit(wanted.name, required, preferred, pods=tuple(pods))


@lru_cache(maxsize=1024)
def pod_shape(
    template: bytes,
    in_fabric: bool,
    pins: tuple[tuple[str, str], ...],
    devices: tuple[tuple[str, int], ...] = (),
    nodes_of_volumes: Terms = None,
    partitions: tuple[int, ...] = (),
) -> PodShape:
    """The shape of pods with this spec and these needs: the same object for the same arguments, which the
    solver compares."""
    spec: dict[str, Any] = msgspec.json.decode(template)
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    shape = PodShape(
        dict(Counter(pod_requests({"spec": with_default_requests(spec)})) + Counter(dict(devices))),
        spec.get("nodeSelector") or {},
        both(
            None if affinity is None else tuple(map(_term, affinity.get("nodeSelectorTerms") or ())),
            nodes_of_volumes,
        ),
        tuple(_toleration(each) for each in spec.get("tolerations") or ()),
        in_fabric,
        partitions,
    )
    return pinned_shape(shape, dict(pins))


def pinned_shape(shape: PodShape, pins: Pins) -> PodShape:
    """The shape with pins. They do not override the user's node selector: where it contradicts a pin, no node
    matches both, which the solver reports."""
    own = shape.node_selector
    contradicted = [
        Requirement(key, "In", (pins[key],)) for key in pins if own.get(key, pins[key]) != pins[key]
    ]
    affinity = shape.affinity
    if contradicted:
        terms = affinity if affinity is not None else (Term(),)
        affinity = tuple(Term((*each.expressions, *contradicted), each.fields) for each in terms)
    return replace(shape, node_selector={**pins, **own}, affinity=affinity)


def labelled_shape(shape: PodShape, keys: Iterable[str]) -> PodShape:
    """The shape of pods that go only to nodes with these labels, of any value."""
    present = tuple(Requirement(key, "Exists") for key in keys)
    if shape.affinity is None:
        return replace(shape, affinity=(Term(present),))
    # A term without any expression matches no node: it stays as it is.
    terms = (Term((*t.expressions, *present), t.fields) if t != Term() else t for t in shape.affinity)
    return replace(shape, affinity=tuple(terms))


@lru_cache(maxsize=1024)
def priority_class(template: bytes) -> str:
    """The PriorityClass of pods with this spec; empty for the default class."""
    spec: dict[str, Any] = msgspec.json.decode(template)
    return spec.get("priorityClassName") or ""


def _term(term: Body) -> Term:
    return Term(
        tuple(map(_requirement, term.get("matchExpressions") or ())),
        tuple(map(_requirement, term.get("matchFields") or ())),
    )


def _requirement(each: Body) -> Requirement:
    return Requirement(each["key"], each["operator"], tuple(each.get("values") or ()))


def _toleration(each: Body) -> Toleration:
    fields = {name: each.get(name) or "" for name in ("key", "operator", "value", "effect")}
    return Toleration(**fields)


def with_default_requests(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with what the API server defaults: a limit without a request is the request as well."""

    def defaulted(owner: dict[str, Any]) -> dict[str, Any]:
        resources = owner.get("resources") or {}
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {**owner, "resources": {**resources, "requests": requests}} if requests else owner

    containers = {
        kind: [defaulted(each) for each in spec.get(kind) or ()] for kind in ("containers", "initContainers")
    }
    return defaulted({**spec, **containers})
