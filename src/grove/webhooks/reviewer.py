"""A review in, an answer out: which rule is asked, and with what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from msgspec.structs import replace

from grove.api.kind import GROVE
from grove.api.sets import PodCliqueSet
from grove.api.topology import ClusterTopology, ClusterTopologyBinding
from grove.dynamo import reading, rules
from grove.dynamo.common import NVIDIA
from grove.dynamo.defaults import default_graph
from grove.dynamo.types import DynamoGraphDeployment
from grove.rules import authorise, defaults, fabric, fabric_claims, topologies, validate
from grove.rules.model import Facts, Request, Verdict
from grove.webhooks import patches, reviews
from grove.webhooks.graphs import GraphSight
from grove.webhooks.registrations import Path
from grove.webhooks.reviews import Asked, NotAReview, TooDeep
from grove.webhooks.sight import Sight, Unseen

Body = dict[str, Any]
log = structlog.get_logger("grove.webhooks")

_GRAPHS = frozenset({DynamoGraphDeployment.KIND.plural})
_SETS = frozenset({PodCliqueSet.KIND.plural})
_TOPOLOGIES = frozenset({ClusterTopology.KIND.plural, ClusterTopologyBinding.KIND.plural})


class Reviewer:
    """Answers reviews, one at a time and each on its own."""

    def __init__(self, sight: Sight, *, authorizer: bool = False, graphs: GraphSight | None = None) -> None:
        self._sight = sight
        self._answers: dict[str, Callable[[Asked], Awaitable[bytes]]] = {
            Path.DEFAULT_SET: self._default_set,
            Path.VALIDATE_SET: self._validate_set,
            Path.VALIDATE_TOPOLOGY: self._validate_topology,
        }
        if authorizer:
            self._answers[Path.AUTHORIZE] = self._authorise
        if graphs is not None:
            self._graphs = graphs
            self._answers[Path.DEFAULT_GRAPH] = self._default_graph
            self._answers[Path.VALIDATE_GRAPH] = self._validate_graph

    @property
    def paths(self) -> tuple[str, ...]:
        """Where there is something to be asked."""
        return tuple(self._answers)

    async def answer(self, path: str, body: bytes) -> bytes:
        """The review that answers. Raises NotAReview only if there is nobody to answer to."""
        try:
            asked = reviews.read(body)
        except TooDeep as problem:
            return reviews.denied(problem.uid, str(problem), code=HTTPStatus.BAD_REQUEST)
        try:
            return await self._answers[path](asked)
        except NotAReview as problem:
            return reviews.denied(asked.uid, str(problem), code=HTTPStatus.BAD_REQUEST)
        except Unseen as problem:
            return reviews.denied(asked.uid, str(problem), code=HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            key = f"{asked.namespace}/{asked.name}"
            log.exception("review failed", key=key, action=path, reason="a fault that nobody foresaw")
            why = f"a fault of the Grove operator, which logged it: {path} {asked.operation} {key}"
            return reviews.denied(asked.uid, why, code=HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _default_set(self, asked: Asked) -> bytes:
        _expect(asked, _SETS)
        before, old = asked.new(), asked.old() if asked.operation == "UPDATE" else None
        after = defaults.default_set(before, old)
        warnings: list[str] = []
        if asked.operation == "CREATE":
            facts = self._sight.standing
            if (sources := fabric_claims.sources(after, facts)) is not None:
                classes = await self._sight.device_classes(asked.namespace, sources)
                after, warnings = fabric_claims.counted(after, facts, classes)
            after = fabric.marked(after, facts)
        return reviews.allowed(asked.uid, warnings, patch=list(patches.between(before, after)))

    async def _validate_set(self, asked: Asked) -> bytes:
        _expect(asked, _SETS)
        new, facts = asked.new(), self._sight.standing
        named = validate.topologies_named(new) if facts.topology_aware else ()
        facts = await self._sight.facts_on(named, validate.enquiries(new, facts))
        if asked.operation == "CREATE" and fabric.names_domains(new, facts):
            facts = replace(facts, sharers=self._sight.sharers(asked.namespace, asked.name))
        return _judged(asked, new, facts, validate.on_create, validate.on_update)

    async def _validate_topology(self, asked: Asked) -> bytes:
        _expect(asked, _TOPOLOGIES)
        facts = self._sight.facts_around(asked.resource.resource, asked.name)
        if asked.operation == "DELETE":
            return reviews.allowed(asked.uid, topologies.on_delete(asked.old(), facts).warnings)
        return _judged(asked, asked.new(), facts, topologies.on_create, topologies.on_update)

    async def _default_graph(self, asked: Asked) -> bytes:
        """What does not fit its type is refused here already: the API server would name but one field of it,
        and forget what it does not know."""
        _expect(asked, _GRAPHS, NVIDIA)
        before = asked.new()
        wrong = reading.misshapen(before)
        if wrong and asked.operation == "UPDATE":
            wrong = reading.ratcheted(wrong, asked.old())
        if wrong:
            return reviews.denied(asked.uid, Verdict(wrong).message)
        old = asked.old() if asked.operation == "UPDATE" else None
        after = default_graph(before, creating=asked.operation == "CREATE", old=old)
        return reviews.allowed(asked.uid, patch=list(patches.between(before, after)))

    async def _validate_graph(self, asked: Asked) -> bytes:
        _expect(asked, _GRAPHS, NVIDIA)
        new = asked.new()
        known = await self._graphs.around(new)
        if asked.operation == "CREATE":
            verdict = rules.on_create(new, known, self._graphs.facts(known))
        else:
            user, ours = asked.user_info.username, self._sight.standing.operator_user
            verdict = rules.on_update(asked.old(), new, known, by=user if ours and user != ours else "")
        if verdict.allowed:
            return reviews.allowed(asked.uid, verdict.warnings)
        return reviews.denied(asked.uid, verdict.message, verdict.warnings)

    async def _authorise(self, asked: Asked) -> bytes:
        request = Request(
            operation=asked.operation,
            resource=asked.resource.resource,
            user=asked.user_info.username,
            namespace=asked.namespace,
            name=asked.name,
            old_labels=_labels(asked.old()) if asked.operation in ("UPDATE", "DELETE") else {},
            new_labels=_labels(asked.new()) if asked.operation in ("CREATE", "UPDATE") else {},
        )
        name = authorise.parent_name(request)
        parent = await self._sight.parent(asked.namespace, name) if name else None
        decision = authorise.authorise(request, parent, self._sight.standing)
        if decision.allowed:
            return reviews.allowed(asked.uid, decision.warnings)
        return reviews.denied(asked.uid, decision.reason, decision.warnings)


def _judged(
    asked: Asked,
    new: Body,
    facts: Facts,
    on_create: Callable[[Body, Facts], Verdict],
    on_update: Callable[[Body, Body, Facts], Verdict],
) -> bytes:
    if asked.operation == "CREATE":
        verdict = on_create(new, facts)
    elif asked.operation == "UPDATE":
        verdict = on_update(asked.old(), new, facts)
    else:
        return reviews.allowed(asked.uid)
    if verdict.allowed:
        return reviews.allowed(asked.uid, verdict.warnings)
    return reviews.denied(asked.uid, verdict.message, verdict.warnings)


def _expect(asked: Asked, plurals: frozenset[str], group: str = GROVE) -> None:
    """A rule that was written for something else must not be taken for one of ours."""
    resource = asked.resource
    if resource.group != group or resource.resource not in plurals:
        about = f"{resource.resource}.{resource.group}"[:200]
        raise NotAReview(f"asked about {about}: correct the rules of the webhook configuration")


def _labels(body: Mapping[str, Any]) -> Mapping[str, str]:
    metadata = body.get("metadata")
    found = metadata.get("labels") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
