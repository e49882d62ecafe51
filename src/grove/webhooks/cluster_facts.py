"""Collects the facts about the cluster that admission rules need: from the caches, else from the API server.

A topology and a set that refers to it may be applied together, and a cache lags behind. So a name that is not
in the cache is read from the API server before a request is denied or allowed because of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from grove import timing
from grove.api.naming.annotations import shared_with
from grove.api.types.clustertopology import LABEL_KEY, MAX_LEVELS, ClusterTopology, ClusterTopologyBinding
from grove.api.types.kubernetes_objects import PriorityClass, ResourceClaimTemplateObject
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.channel_coverage import ChannelCoverage
from grove.fabrics.provider import Domain
from grove.fabrics.requirements import DomainRequirement, Mode, domain_requirements
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import NODES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from grove.kube.errors import Forbidden, KubeError, NotFound
from grove.rules.fabric.accelerator_claims import ClaimSource, device_classes_in
from grove.rules.model import Facts, ParentSet, TopologyUser
from grove.rules.podcliqueset.priority_classes import PRIORITY_CLASS
from grove.schedulers.backend import AnyTopology, ClusterLookup
from grove.topology.constraints import domains as constrained
from grove.topology.constraints import topology_name_of
from grove.topology.fallbacks import attempts
from grove.topology.nesting import nestings

T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?").fullmatch  # objects cannot have other names
_LABEL = re.compile(LABEL_KEY).fullmatch


class ClusterLookupFailed(Exception):
    """An object could not be read; the message says which, and that the request can be retried."""


class _MayNotRead(Exception):
    """The operator may not read a kind, and the verdict does not depend on it."""


class NodeCoverage(Protocol):
    """The channels of nodes."""

    def channel_coverage(self, vendor: str) -> ChannelCoverage | None:
        """How many nodes with accelerators have a channel; None if not known."""
        ...


class FactCaches(Protocol):
    """The caches that are read."""

    sets: Cache[PodCliqueSet]
    topologies: Cache[ClusterTopology]
    topology_bindings: Cache[ClusterTopologyBinding]
    domains: dict[str, Cache[Domain]]
    claim_templates: Cache[ResourceClaimTemplateObject]
    priority_classes: Cache[PriorityClass]

    def outdated(self, resource: Resource) -> bool:
        """Whether the CRD of a kind exists and does not serve the version of the operator."""
        ...

    @property
    def fabric_nodes(self) -> NodeCoverage:
        """The channels and accelerators of nodes."""
        ...


class ClusterFacts:
    """Facts for one review at a time."""

    def __init__(self, caches: FactCaches, client: Client, static_facts: Facts) -> None:
        self._caches, self._client, self.static_facts = caches, client, static_facts

    def base_facts(self) -> Facts:
        """The static facts, the vendors whose kinds are not served, and the channels of nodes."""
        unserved = {
            vendor
            for vendor, cache in self._caches.domains.items()
            if cache.synced_or_absent.is_set() and not cache.synced.is_set()
        }
        coverage = {
            vendor: found
            for vendor in self._caches.domains
            if (found := self._caches.fabric_nodes.channel_coverage(vendor))
        }
        if not unserved and not coverage:
            return self.static_facts
        outdated = (each for each in unserved if self._caches.outdated(self._caches.domains[each].resource))
        return replace(
            self.static_facts,
            unserved=frozenset(unserved),
            outdated=frozenset(outdated),
            channel_coverage=coverage,
        )

    async def facts_with_topologies(
        self, topologies: Iterable[str], lookups: Iterable[ClusterLookup] = ()
    ) -> Facts:
        """The base facts, the levels of those of these topologies that exist, and the objects that are looked
        up for the validation of a set. One that may not be read is left out."""
        named = sorted(filter(_NAME, topologies))[: timing.FACTS_NAMES]
        known = {name: each for name in named if (each := await self._topology(name)) is not None}
        valid = [lookup for lookup in lookups if _NAME(lookup.name)][: timing.FACTS_NAMES]
        found: dict[ClusterLookup, dict[str, Any] | None] = {}
        for lookup in valid:
            with suppress(_MayNotRead):
                found[lookup] = await self._lookup(lookup)
        base_facts = self.base_facts()
        if not known and not found:
            return base_facts
        return replace(
            base_facts,
            topologies={name: _domains_of(topology) for name, topology in known.items()},
            unlabelled={name: _unlabelled(topology) for name, topology in known.items()},
            found=found,
        )

    def domain_sharers(self, namespace: str, name: str) -> tuple[tuple[str, DomainRequirement], ...]:
        """The domains that other sets of the namespace require by name."""
        others = (
            found
            for found in self._caches.sets
            if found.metadata.namespace == namespace
            and found.metadata.name != name
            and found.metadata.deletion_timestamp is None
        )
        return tuple(
            (found.metadata.name, requirement)
            for found in others
            for requirements in domain_requirements(found, self.static_facts.fabrics).values()
            for requirement in requirements
            if requirement.mode is Mode.EXPLICIT
        )

    async def device_classes(
        self, namespace: str, sources: Iterable[ClaimSource]
    ) -> Mapping[ClaimSource, frozenset[str] | None]:
        """The device classes that claims or templates request; None for one that does not exist."""
        valid = [source for source in sources if _NAME(source.name) and _NAME(source.namespace or namespace)][
            : timing.FACTS_CLAIMS
        ]
        found = await asyncio.gather(*(self._classes(namespace, source) for source in valid))
        return dict(zip(valid, found, strict=True))

    async def _classes(self, namespace: str, source: ClaimSource) -> frozenset[str] | None:
        """The device classes of one source; None also for a template of another namespace that is not shared
        with this one."""
        source_namespace = source.namespace or namespace
        if not source.claim and (known := self._caches.claim_templates.get(source_namespace, source.name)):
            annotations, spec = known.metadata.annotations, msgspec.json.decode(known.spec.spec)
        else:
            resource = RESOURCE_CLAIMS if source.claim else RESOURCE_CLAIM_TEMPLATES
            body = await _read(
                f"{resource.kind} {source.name}",
                lambda: self._client.get(resource, source.name, namespace=source_namespace, as_type=dict),
            )
            if body is None:
                return None
            annotations, spec = body["metadata"].get("annotations") or {}, body.get("spec") or {}
            spec = spec if source.claim else spec.get("spec") or {}
        usable = source_namespace == namespace or shared_with(annotations, namespace)
        return device_classes_in(spec) if usable else None

    def facts_for_topology(self, kind: str, name: str) -> Facts:
        """The static facts, and the sets that a change of this topology affects. It is for a warning, so the
        caches are good enough."""
        if not self.static_facts.topology_aware:
            return self.static_facts
        users = tuple(
            user for found in self._caches.sets if (user := _topology_user(found, name)) is not None
        )
        kinds = (self._caches.topologies, self._caches.topology_bindings)
        others = (cache.get("", name) for cache in kinds if cache.resource.plural != kind)
        other_kind_domains = next((_domains_of(found) for found in others if found is not None), None)
        return replace(self.static_facts, users=users, other_kind_domains=other_kind_domains)

    async def _lookup(self, lookup: ClusterLookup) -> dict[str, Any] | None:
        kind = lookup.kind
        resource = Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)
        if kind != PRIORITY_CLASS:
            return await self._live(resource, lookup.name)
        if self._caches.priority_classes.get("", lookup.name) is not None:
            return {}
        try:
            return await self._live(resource, lookup.name)
        except ClusterLookupFailed as failed:
            if isinstance(failed.__cause__, Forbidden):  # rights from before the operator read classes
                raise _MayNotRead from failed
            raise

    async def _live(self, resource: Resource, name: str) -> dict[str, Any] | None:
        return await _read(f"{resource.kind} {name}", lambda: self._client.get(resource, name, as_type=dict))

    async def parent(self, namespace: str, name: str) -> ParentSet | None:
        """The set of that name; None if the API server has none either."""
        known: PodCliqueSet | Object | None = self._caches.sets.get(namespace, name)
        if known is None and namespace and _NAME(name):
            known = await _read(
                f"PodCliqueSet {name}",
                lambda: self._client.get(
                    self._caches.sets.resource, name, namespace=namespace, as_type=Object
                ),
            )
        return ParentSet(name, known.metadata.annotations) if known is not None else None

    async def unused_labels(self, keys: Iterable[str]) -> frozenset[str]:
        """Those of the labels that no node has; none if there are no nodes, or if it cannot be found out: it
        is for a warning."""
        valid = [key for key in keys if _LABEL(key)][:MAX_LEVELS]
        if not valid:
            return frozenset()
        client = self._client
        try:
            async with asyncio.timeout(timing.FACTS_READ_TIMEOUT):
                used = await asyncio.gather(*(client.exists_any(NODES, labels=key) for key in valid))
                unused = frozenset(key for key, is_used in zip(valid, used, strict=True) if not is_used)
                return unused if unused and await client.exists_any(NODES) else frozenset()
        except (TimeoutError, KubeError, ValueError):
            return frozenset()

    async def _topology(self, name: str) -> AnyTopology | None:
        # Of two topologies with one name, the ClusterTopology is used.
        kinds = (self._caches.topologies, self._caches.topology_bindings)
        for cache in kinds:
            if (known := cache.get("", name)) is not None:
                return known
        for cache in kinds:
            live = await _read(f"{cache.resource.kind} {name}", self._reader(cache, name))
            if live is not None:
                return live
        return None

    def _reader(
        self, cache: Cache[ClusterTopology] | Cache[ClusterTopologyBinding], name: str
    ) -> Callable[[], Awaitable[AnyTopology]]:
        return lambda: self._client.get(cache.resource, name, as_type=cache.as_type)


def _topology_user(workload: PodCliqueSet, topology: str) -> TopologyUser | None:
    """The set with what it asks of a topology, in its constraints and its fallbacks; None if nothing."""
    named = [each for each in attempts(workload.spec.template) if topology_name_of(each) == topology]
    if not named:
        return None
    return TopologyUser(
        f"{workload.metadata.namespace}/{workload.metadata.name}",
        frozenset().union(*map(constrained, named)),
        tuple(dict.fromkeys(chain.from_iterable(map(nestings, named)))),
    )


async def _read(what: str, read: Callable[[], Awaitable[T]]) -> T | None:
    try:
        async with asyncio.timeout(timing.FACTS_READ_TIMEOUT):
            return await read()
    except NotFound:
        return None
    except (TimeoutError, KubeError, ValueError) as problem:
        why = str(problem) or f"no answer within {timing.FACTS_READ_TIMEOUT:g} s"
        raise ClusterLookupFailed(f"{what} could not be looked up: {why}; try again") from problem


def _domains_of(topology: AnyTopology) -> tuple[str, ...]:
    return tuple(level.domain for level in topology.spec.levels)


def _unlabelled(topology: AnyTopology) -> dict[str, str]:
    """The domains of which no node has the label, with that label, as the status of the topology says."""
    status = topology.status
    unlabelled = {level.domain for level in status.levels if status.nodes and not level.labelled_nodes}
    return {level.domain: level.key for level in topology.spec.levels if level.domain in unlabelled}
