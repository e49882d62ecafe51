"""What is decided for a gang: an assignment to domains and nodes, or the reason why it waits.

The domains are stored in an annotation of the PodGang, in the write that names its members and before its
pods exist. So all pods of a gang have the same pins, also if another process becomes the leader in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from grove.api.naming import annotations as keys
from grove.api.naming.well_known import HOSTNAME
from grove.plan.placement.needs import ClaimSources
from grove.reasons.model import WaitReason

Pins = Mapping[str, str]
"""A node selector: the label of a required level, and those of the levels above it."""


class GangName(NamedTuple):
    """Namespace and name of a PodGang."""

    namespace: str
    name: str


class PodSlot(NamedTuple):
    """A pod of a gang by its clique and its index there: its name changes when it is replaced."""

    clique: str
    number: int


class NodeLabels(Struct, frozen=True):
    """The labels of the nodes that pods go to."""

    required: Pins = {}
    preferred: Pins = {}
    present: tuple[str, ...] = ()
    """Labels that the nodes must have with any value: those of nodes that belong to the topology."""


NO_NODE_LABELS = NodeLabels()


class Assignment(Struct, frozen=True):
    """Where the pods of a gang go."""

    attempt: int = 0
    """By which constraint: 0 is that of the set, 1 its first fallback."""
    pins: Mapping[str, Pins] = {}
    """By clique. Required levels only: a gang without them may use any node."""
    present: Mapping[str, tuple[str, ...]] = {}
    """By clique, labels of narrower levels that nodes must have with any value: other nodes of the domain do
    not belong to the topology."""
    nodes: Mapping[PodSlot, str] = {}
    """The node of each pod that is not bound yet. Pods are nominated to it if the gang is nominated;
    otherwise the scheduler may choose another one."""
    nominated: bool = False
    """Whether free nodes are scarce: pods are created gated and nominated to their nodes, and are released
    together."""
    released: bool = False
    """Whether nominated pods may be scheduled now."""
    preempts: bool = False
    """Whether its nodes are free only once the scheduler has preempted pods of a lower priority."""
    hosts: Mapping[PodSlot, str] = {}
    """Of a released gang that starts: the hostnames of nodes on which pods must be preempted. The scheduler
    would otherwise choose its victims on any node, also on those that are meant for other pods."""
    preempting: bool = False
    """Whether of a released gang only these pods are released yet. The others follow once they are bound, so
    that they do not hold their nodes while victims leave."""
    failed: bool = False
    """Whether the gang cannot be completed: all of its pods are deleted, and it starts over."""
    near: Mapping[str, Pins] = {}
    """By clique, the labels that the scheduler should prefer: those of preferred levels."""
    domain: tuple[str, ...] = ()
    """The domain of the gang as a whole; empty if it may use any node."""
    in_part: bool = False
    """Whether pods were released although there is no place for all of them: autoscalers see them, and those
    that fit may start before the others."""
    renewal: str = ""
    """Changes when the scheduler may have lost the nominations: they are then written again."""

    def node_labels(self, clique: str) -> NodeLabels:
        """The labels of the nodes that the pods of a clique go to."""
        pins = self.pins.get(clique, {})
        present = tuple(key for key in self.present.get(clique, ()) if key not in pins)
        return NodeLabels(pins, self.near.get(clique, {}), present)

    def node_labels_of_pod(self, slot: PodSlot) -> NodeLabels:
        """The labels of the node that a released pod goes to."""
        labels, host = self.node_labels(slot.clique), self.hosts.get(slot)
        return replace(labels, required={**labels.required, HOSTNAME: host}) if host else labels

    @property
    def gated(self) -> bool:
        """Whether its pods wait for their release."""
        return self.nominated and not self.released

    def releases(self, slot: PodSlot) -> bool:
        """Whether a pod may be scheduled now."""
        return slot in self.nodes and not self._holds_back(slot)

    def nominated_node(self, slot: PodSlot) -> str:
        """The node that a pod is nominated to until it is released; empty if there is none."""
        return self.nodes.get(slot, "") if self._holds_back(slot) else ""

    def _holds_back(self, slot: PodSlot) -> bool:
        return self.gated or (self.preempting and slot not in self.hosts)


class Waiting(Struct, frozen=True):
    """There is no place for a gang at present."""

    message: str
    """Why, in one line for users."""
    gave_up: bool = False
    """Whether the search was stopped at its limit of work: it is not known whether there is a place."""
    nodes: Mapping[PodSlot, str] = {}
    """Nodes that are held for the gang although they are full: its pods are nominated to them."""
    renewal: str = ""
    """As in an assignment."""
    reason: WaitReason | None = None
    """The same with its code and the evidence."""


Decision = Assignment | Waiting


class Placements(Struct, frozen=True):
    """What is decided for the gangs of one replica."""

    decisions: Mapping[str, Decision] = {}
    """By gang. A gang without a decision waits for it."""
    problem: str = ""
    """Why nothing can be decided, such as a missing RBAC permission. Then only gangs with required levels
    wait: the others are left to the scheduler."""
    node_labels: Mapping[str, Mapping[str, str]] | None = None
    """The labels of the nodes that pods of the replica are bound to; None: not listed yet."""
    sources: ClaimSources = ClaimSources()
    """What the claims of the replica's pods refer to."""
    delay: str = ""
    """Why nothing is decided yet, such as an error of the API server. Every gang waits until that is over."""
    late: bool = False
    """Whether the replica has waited for a decision for longer than a round takes."""


def failed_gangs(placements: Placements | None) -> frozenset[str]:
    """The gangs that start over, with all of their pods."""
    decisions = placements.decisions if placements is not None else {}
    return frozenset(name for name, each in decisions.items() if isinstance(each, Assignment) and each.failed)


def released_in_part(placements: Placements | None) -> frozenset[str]:
    """The gangs whose pods were released although there is no place for all of them."""
    decisions = placements.decisions if placements is not None else {}
    return frozenset(
        name for name, each in decisions.items() if isinstance(each, Assignment) and each.in_part
    )


class PlacementRecord(Struct, frozen=True, omit_defaults=True):
    """What a PodGang records of its assignment."""

    pins: Mapping[str, Pins] = {}
    """By clique."""
    attempt: int = 0


_NOTHING = PlacementRecord()
_decoder = msgspec.json.Decoder(PlacementRecord)


def to_annotation(assignment: Assignment) -> str:
    """The value of the annotation on a PodGang; empty if there is nothing to record."""
    pins = {clique: dict(each) for clique, each in assignment.pins.items() if each}
    record = PlacementRecord(pins, assignment.attempt)
    return "" if record == _NOTHING else msgspec.json.encode(record, order="deterministic").decode()


def recorded(annotations: Mapping[str, str], fallbacks: int) -> PlacementRecord:
    """What a PodGang records; nothing if the annotation is missing or was damaged, or names a fallback that
    the set does not have."""
    try:
        found = _decoder.decode(annotations.get(keys.PLACEMENT) or "{}")
    except msgspec.MsgspecError:
        return _NOTHING
    return found if 0 <= found.attempt <= fallbacks else _NOTHING
