"""Topology constraints of sets, groups and cliques, and the fallbacks of a set's constraint."""

from __future__ import annotations

from typing import Annotated, ClassVar

from grove.api.wire import Duration, Rule, Wire, checked, defaulted, facet, text

MAX_FALLBACKS = 8
"""Each is looked up and checked when a set is created; a user who lists more gains nothing by it."""

Domain = Annotated[str, text(r"^[a-z][a-z0-9-]*$", shortest=1, longest=63)]

PACKS_SOMETHING = checked(
    Rule(
        "has(self.pack) || has(self.packDomain)",
        "topologyConstraint must specify pack or deprecated packDomain",
        "FieldValueRequired",
        ".pack",
    )
)


class TopologyPack(Wire, frozen=True):
    """The topology domains into which one instance must, or should, be packed."""

    RULES: ClassVar = (
        Rule(
            "has(self.required) || has(self.preferred)",
            "pack must specify at least one of required or preferred",
            "FieldValueRequired",
        ),
    )

    required: Domain = ""
    """The level whose domain all pods of one instance must share. An instance that fits into no single domain
    is not scheduled."""
    preferred: Domain = ""
    """The level whose domain all pods of one instance should share: best effort, usually narrower than
    `required`. It never keeps pods from being scheduled."""


class TopologyConstraint(Wire, frozen=True):
    """Packs each instance of the set, group or clique that carries it into one topology domain. Instances are
    packed independently of each other."""

    RULES: ClassVar = (
        Rule(
            "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            "must not set both pack.required and deprecated packDomain",
            field_path=".pack.required",
        ),
    )

    topology_name: str = ""
    """The ClusterTopology or ClusterTopologyBinding that defines the domains. Immutable. Set on the
    PodCliqueSet, it applies to all its groups and cliques; a group or clique that sets it must use the same
    name."""
    pack: TopologyPack | None = None
    """The topology domains into which one instance must, or should, be packed."""
    pack_domain: Domain = ""
    """Deprecated: the same as `pack.required`. Set only one of the two."""

    @property
    def required(self) -> str:
        """The required domain, from `pack.required` or `packDomain`; empty if there is none."""
        return (self.pack.required if self.pack else "") or self.pack_domain

    @property
    def preferred(self) -> str:
        """The preferred domain; empty if there is none."""
        return self.pack.preferred if self.pack else ""


class TopologyFallback(Wire, frozen=True):
    """A replacement for the constraint of the set, for gangs for which no place is found. What it leaves out
    is as in the constraint."""

    RULES: ClassVar = (
        Rule(
            "has(self.topologyName) || has(self.packDomain)",
            "a fallback must specify topologyName or packDomain",
            "FieldValueRequired",
        ),
    )

    topology_name: str = ""
    """The ClusterTopology or ClusterTopologyBinding that defines the domains, also for the constraints of
    groups and cliques. Defaults to that of the constraint."""
    pack_domain: Domain = ""
    """The level whose domain all pods of one replica of the set must share. Defaults to the required one of
    the constraint."""
    after: Duration = defaulted("1m0s")
    """How long no place was found for the gang with the constraint, or with the fallback before this one,
    until this one is tried."""


class SetTopologyConstraint(TopologyConstraint, frozen=True):
    """Packs each replica of the set into one topology domain. Replicas are packed independently of each
    other."""

    fallbacks: Annotated[tuple[TopologyFallback, ...], facet(max_items=MAX_FALLBACKS)] = ()
    """What to try, in this order, for a gang of which nothing is scheduled because no place is found for it.
    Immutable. The status of the PodGang says which one was chosen."""
