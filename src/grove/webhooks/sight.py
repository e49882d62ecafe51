"""What the rules are told of the cluster: from the caches, and where those know nothing, from the server.

A topology and a set that names it may be applied in one breath, and a cache is a moment behind. So a name
that the cache does not know is asked for before anything is refused or waved through because of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from grove.api.annotations import shared_with
from grove.api.cluster import ResourceClaimTemplateObject
from grove.api.sets import PodCliqueSet
from grove.api.topology import ClusterTopology, ClusterTopologyBinding
from grove.fabrics.provider import Domain
from grove.fabrics.resolve import Demand, Mode, demands
from grove.fabrics.survey import Survey
from grove.kube.cache import Cache
from grove.kube.client import Client, Object
from grove.kube.errors import KubeError, NotFound
from grove.kube.resource import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from grove.rules.fabric_claims import Source, classes_in
from grove.rules.model import Facts, Parent, User
from grove.schedulers.backend import Enquiry
from grove.topology.constraints import domains as constrained
from grove.topology.constraints import name_of
from grove.topology.nesting import nestings

T = TypeVar("T")
_PATIENCE = 2.0  # seconds for all live reads of a review: the API server that asks us waits for 5
_MOST_NAMES = 4  # that are looked up; a set that names two topologies is refused anyway
_MOST_CLAIMS = 20
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?").fullmatch  # others cannot exist


class Unseen(Exception):
    """The cluster could not be asked; the message says what about, and that it is worth another try."""


class Surveys(Protocol):
    """Knows the nodes."""

    def survey(self, vendor: str) -> Survey | None:
        """How they stand; None if nobody knows."""
        ...


class Known(Protocol):
    """The caches that are looked at."""

    sets: Cache[PodCliqueSet]
    topologies: Cache[ClusterTopology]
    topology_bindings: Cache[ClusterTopologyBinding]
    domains: dict[str, Cache[Domain]]
    claim_templates: Cache[ResourceClaimTemplateObject]

    @property
    def channels(self) -> Surveys:
        """What nodes have for fabric domains."""
        ...


class Sight:
    """Facts for one review at a time."""

    def __init__(self, known: Known, client: Client, standing: Facts) -> None:
        self._known, self._client, self.standing = known, client, standing

    def here(self) -> Facts:
        """The standing facts, which vendors' kinds are not served, and what nodes have for their domains."""
        unserved = {
            vendor
            for vendor, cache in self._known.domains.items()
            if cache.settled.is_set() and not cache.synced.is_set()
        }
        surveys = {
            vendor: found for vendor in self._known.domains if (found := self._known.channels.survey(vendor))
        }
        if not unserved and not surveys:
            return self.standing
        return replace(self.standing, unserved=frozenset(unserved), surveys=surveys)

    async def facts_on(self, topologies: Iterable[str], enquiries: Iterable[Enquiry] = ()) -> Facts:
        """The standing facts, what these topologies are like, those aside that do not exist, and what
        schedulers want to know before they take a set."""
        known: dict[str, tuple[str, ...]] = {}
        for name in sorted(filter(_NAME, topologies))[:_MOST_NAMES]:
            if (domains := await self._domains(name)) is not None:
                known[name] = domains
        asked = [enquiry for enquiry in enquiries if _NAME(enquiry.name)][:_MOST_NAMES]
        found = {enquiry: await self._look(enquiry) for enquiry in asked}
        here = self.here()
        return replace(here, topologies=known, found=found) if known or found else here

    def sharers(self, namespace: str, name: str) -> tuple[tuple[str, Demand], ...]:
        """What other sets of the namespace ask for by name."""
        others = (
            found
            for found in self._known.sets
            if found.metadata.namespace == namespace
            and found.metadata.name != name
            and found.metadata.deletion_timestamp is None
        )
        return tuple(
            (found.metadata.name, demand)
            for found in others
            for asked in demands(found, self.standing.fabrics).values()
            for demand in asked
            if demand.mode is Mode.EXPLICIT
        )

    async def device_classes(
        self, namespace: str, sources: Iterable[Source]
    ) -> Mapping[Source, frozenset[str] | None]:
        """Of which classes the devices are that claims ask for; None: there is no such claim, or template."""
        places = {source: source.namespace or namespace for source in sources}
        asked = [source for source in sources if _NAME(source.name) and _NAME(places[source])][:_MOST_CLAIMS]
        found = await asyncio.gather(*(self._classes(namespace, source) for source in asked))
        return dict(zip(asked, found, strict=True))

    async def _classes(self, namespace: str, source: Source) -> frozenset[str] | None:
        """None, too, if it is a template of another namespace that is not shared with this one."""
        place = source.namespace or namespace
        if not source.claim and (known := self._known.claim_templates.get(place, source.name)):
            notes, spec = known.metadata.annotations, msgspec.json.decode(known.spec.spec)
        else:
            resource = RESOURCE_CLAIMS if source.claim else RESOURCE_CLAIM_TEMPLATES
            body = await _ask(
                f"{resource.kind} {source.name}",
                lambda: self._client.get(resource, source.name, namespace=place, as_type=dict),
            )
            if body is None:
                return None
            notes, spec = body["metadata"].get("annotations") or {}, body.get("spec") or {}
            spec = spec if source.claim else spec.get("spec") or {}
        return classes_in(spec) if place == namespace or shared_with(notes, namespace) else None

    def facts_around(self, kind: str, name: str) -> Facts:
        """The standing facts, and who would notice a change of this topology. It is for a warning: what the
        caches know will do."""
        if not self.standing.topology_aware:
            return self.standing
        named = ((found, found.spec.template) for found in self._known.sets)
        users = tuple(
            User(
                f"{found.metadata.namespace}/{found.metadata.name}",
                constrained(template),
                tuple(nestings(template)),
            )
            for found, template in named
            if name_of(template) == name
        )
        kinds = (self._known.topologies, self._known.topology_bindings)
        others = (cache.get("", name) for cache in kinds if cache.resource.plural != kind)
        rival = next((_domains_of(found) for found in others if found is not None), None)
        return replace(self.standing, users=users, rival=rival)

    async def _look(self, enquiry: Enquiry) -> dict[str, Any] | None:
        kind = enquiry.kind
        resource = Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)
        return await _ask(
            f"{kind.name} {enquiry.name}", lambda: self._client.get(resource, enquiry.name, as_type=dict)
        )

    async def parent(self, namespace: str, name: str) -> Parent | None:
        """The set of that name; None if there certainly is none."""
        known: PodCliqueSet | Object | None = self._known.sets.get(namespace, name)
        if known is None and namespace and _NAME(name):
            known = await _ask(
                f"PodCliqueSet {name}",
                lambda: self._client.get(
                    self._known.sets.resource, name, namespace=namespace, as_type=Object
                ),
            )
        return Parent(name, known.metadata.annotations) if known is not None else None

    async def _domains(self, name: str) -> tuple[str, ...] | None:
        # Of two with one name, the first counts.
        kinds = (self._known.topologies, self._known.topology_bindings)
        for cache in kinds:
            if (known := cache.get("", name)) is not None:
                return _domains_of(known)
        for cache in kinds:
            live = await _ask(f"{cache.resource.kind} {name}", self._reader(cache, name))
            if live is not None:
                return _domains_of(live)
        return None

    def _reader(
        self, cache: Cache[ClusterTopology] | Cache[ClusterTopologyBinding], name: str
    ) -> Callable[[], Awaitable[ClusterTopology | ClusterTopologyBinding]]:
        return lambda: self._client.get(cache.resource, name, as_type=cache.as_type)


async def _ask(what: str, read: Callable[[], Awaitable[T]]) -> T | None:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await read()
    except NotFound:
        return None
    except (TimeoutError, KubeError, ValueError) as problem:
        why = str(problem) or f"no answer within {_PATIENCE:g} s"
        raise Unseen(f"{what} could not be looked up: {why}; try again") from problem


def _domains_of(topology: ClusterTopology | ClusterTopologyBinding) -> tuple[str, ...]:
    return tuple(level.domain for level in topology.spec.levels)
