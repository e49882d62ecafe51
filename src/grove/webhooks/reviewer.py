"""Answers admission reviews: decodes the request, collects facts, calls the rules, encodes the response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from msgspec.structs import replace

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kind import GROVE
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.api.common import NVIDIA
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.decode import decoder
from grove.rules import authorization, cluster_topology
from grove.rules.fabric import accelerator_claims, domains
from grove.rules.model import AdmissionResult, Facts, ManagedObjectRequest
from grove.rules.podcliqueset import defaults, validation
from grove.webhooks import admission_review, json_patch
from grove.webhooks.admission_review import AdmissionRequest, InvalidReview, TooDeep
from grove.webhooks.cluster_facts import ClusterFacts, ClusterLookupFailed
from grove.webhooks.dynamo_facts import GraphClusterFacts
from grove.webhooks.registrations import Path

Body = dict[str, Any]
log = structlog.get_logger("grove.webhooks")

_GRAPHS = frozenset({DynamoGraphDeployment.KIND.plural})
_SETS = frozenset({PodCliqueSet.KIND.plural})
_TOPOLOGIES = frozenset({ClusterTopology.KIND.plural, ClusterTopologyBinding.KIND.plural})


class Reviewer:
    """Answers reviews; each is independent of the others."""

    def __init__(
        self,
        cluster_facts: ClusterFacts,
        *,
        authorizer: bool = False,
        graphs: GraphClusterFacts | None = None,
    ) -> None:
        self._cluster_facts = cluster_facts
        self._handlers: dict[str, Callable[[AdmissionRequest], Awaitable[bytes]]] = {
            Path.DEFAULT_SET: self._default_set,
            Path.VALIDATE_SET: self._validate_set,
            Path.VALIDATE_TOPOLOGY: self._validate_topology,
        }
        if authorizer:
            self._handlers[Path.AUTHORIZE] = self._authorise
        if graphs is not None:
            self._graphs = graphs
            self._handlers[Path.DEFAULT_GRAPH] = self._default_graph
            self._handlers[Path.VALIDATE_GRAPH] = self._validate_graph

    @property
    def paths(self) -> tuple[str, ...]:
        """The URL paths that are served."""
        return tuple(self._handlers)

    async def answer(self, path: str, body: bytes) -> bytes:
        """The response to a review. Raises InvalidReview only if the request has no UID to respond to."""
        try:
            request = admission_review.read(body)
        except TooDeep as problem:
            return admission_review.denied(problem.uid, str(problem), code=HTTPStatus.BAD_REQUEST)
        try:
            return await self._handlers[path](request)
        except InvalidReview as problem:
            return admission_review.denied(request.uid, str(problem), code=HTTPStatus.BAD_REQUEST)
        except ClusterLookupFailed as problem:
            return admission_review.denied(request.uid, str(problem), code=HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            key = f"{request.namespace}/{request.name}"
            log.exception("review failed", key=key, action=path, reason="unexpected exception")
            why = f"internal error of the Grove operator, see its log: {path} {request.operation} {key}"
            return admission_review.denied(request.uid, why, code=HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _default_set(self, request: AdmissionRequest) -> bytes:
        _require_resource(request, _SETS)
        before, old = request.new(), request.old() if request.operation == "UPDATE" else None
        after = defaults.default_set(before, old)
        warnings: list[str] = []
        if request.operation == "CREATE":
            facts = self._cluster_facts.static_facts
            if (sources := accelerator_claims.claim_sources(after, facts)) is not None:
                classes = await self._cluster_facts.device_classes(request.namespace, sources)
                after, warnings = accelerator_claims.with_claim_annotation(after, facts, classes)
            after = domains.with_auto_annotation(after, facts)
        return admission_review.allowed(request.uid, warnings, patch=list(json_patch.diff(before, after)))

    async def _validate_set(self, request: AdmissionRequest) -> bytes:
        _require_resource(request, _SETS)
        new, facts = request.new(), self._cluster_facts.static_facts
        named = validation.topologies_named(new) if facts.topology_aware else ()
        facts = await self._cluster_facts.facts_with_topologies(named, validation.lookups(new, facts))
        if request.operation == "CREATE" and domains.names_domains(new, facts):
            facts = replace(
                facts, domain_sharers=self._cluster_facts.domain_sharers(request.namespace, request.name)
            )
        return _validate(request, new, facts, validation.on_create, validation.on_update)

    async def _validate_topology(self, request: AdmissionRequest) -> bytes:
        _require_resource(request, _TOPOLOGIES)
        facts = self._cluster_facts.facts_for_topology(request.resource.resource, request.name)
        if request.operation == "DELETE":
            return admission_review.allowed(
                request.uid, cluster_topology.on_delete(request.old(), facts).warnings
            )
        keys = cluster_topology.level_keys(request.new()) if facts.topology_aware else ()
        facts = replace(facts, unused_labels=await self._cluster_facts.unused_labels(keys))
        return _validate(
            request, request.new(), facts, cluster_topology.on_create, cluster_topology.on_update
        )

    async def _default_graph(self, request: AdmissionRequest) -> bytes:
        """Denies objects that do not fit their type already before validation: the API server would report
        only one of the fields, and drop unknown ones."""
        _require_resource(request, _GRAPHS, NVIDIA)
        before = request.new()
        wrong = decoder.decode_errors(before)
        if wrong and request.operation == "UPDATE":
            wrong = decoder.new_errors(wrong, request.old())
        if wrong:
            return admission_review.denied(request.uid, AdmissionResult(wrong).message)
        old = request.old() if request.operation == "UPDATE" else None
        after = default_graph(before, creating=request.operation == "CREATE", old=old)
        return admission_review.allowed(request.uid, patch=list(json_patch.diff(before, after)))

    async def _validate_graph(self, request: AdmissionRequest) -> bytes:
        _require_resource(request, _GRAPHS, NVIDIA)
        new = request.new()
        context = await self._graphs.context_for(new)
        if request.operation == "CREATE":
            verdict = graph_validation.on_create(new, context, self._graphs.facts(context))
        else:
            user, operator_user = request.user_info.username, self._cluster_facts.static_facts.operator_user
            verdict = graph_validation.on_update(
                request.old(), new, context, by=user if operator_user and user != operator_user else ""
            )
        if verdict.allowed:
            return admission_review.allowed(request.uid, verdict.warnings)
        return admission_review.denied(request.uid, verdict.message, verdict.warnings)

    async def _authorise(self, request: AdmissionRequest) -> bytes:
        query = ManagedObjectRequest(
            operation=request.operation,
            resource=request.resource.resource,
            user=request.user_info.username,
            namespace=request.namespace,
            name=request.name,
            old_labels=_labels(request.old()) if request.operation in ("UPDATE", "DELETE") else {},
            new_labels=_labels(request.new()) if request.operation in ("CREATE", "UPDATE") else {},
        )
        name = authorization.parent_name(query)
        parent = await self._cluster_facts.parent(request.namespace, name) if name else None
        decision = authorization.authorize(query, parent, self._cluster_facts.static_facts)
        if decision.allowed:
            return admission_review.allowed(request.uid, decision.warnings)
        return admission_review.denied(request.uid, decision.reason, decision.warnings)


def _validate(
    request: AdmissionRequest,
    new: Body,
    facts: Facts,
    on_create: Callable[[Body, Facts], AdmissionResult],
    on_update: Callable[[Body, Body, Facts], AdmissionResult],
) -> bytes:
    if request.operation == "CREATE":
        verdict = on_create(new, facts)
    elif request.operation == "UPDATE":
        verdict = on_update(request.old(), new, facts)
    else:
        return admission_review.allowed(request.uid)
    if verdict.allowed:
        return admission_review.allowed(request.uid, verdict.warnings)
    return admission_review.denied(request.uid, verdict.message, verdict.warnings)


def _require_resource(request: AdmissionRequest, plurals: frozenset[str], group: str = GROVE) -> None:
    """Raises InvalidReview for a resource that the webhook does not handle: its configuration is wrong."""
    resource = request.resource
    if resource.group != group or resource.resource not in plurals:
        about = f"{resource.resource}.{resource.group}"[:200]
        raise InvalidReview(f"unexpected resource {about}: correct the rules of the webhook configuration")


def _labels(body: Mapping[str, Any]) -> Mapping[str, str]:
    metadata = body.get("metadata")
    found = metadata.get("labels") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
