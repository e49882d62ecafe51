"""Answers admission reviews: decodes the request, collects facts, calls the rules, encodes the response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

from msgspec.structs import replace

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kind import GROVE
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.api.common import NVIDIA
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.logger import get_logger
from grove.rules import authorization, cluster_topology
from grove.rules.fabric import accelerator_claims, domains
from grove.rules.podcliqueset import validation
from grove.webhooks import admission_review, review_steps
from grove.webhooks.admission_review import AdmissionRequest, InvalidReview, TooDeep
from grove.webhooks.cluster_facts import ClusterFacts, ClusterLookupFailed
from grove.webhooks.computation import Compute, compute_here
from grove.webhooks.dynamo_facts import GraphClusterFacts
from grove.webhooks.registrations import Path

log = get_logger("grove.webhooks")

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
        self._handlers: dict[str, Callable[[AdmissionRequest, Compute], Awaitable[bytes]]] = {
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

    async def answer(self, path: str, body: bytes, compute: Compute = compute_here) -> bytes:
        """The response to a review. Raises InvalidReview only if the request has no UID to respond to. All
        work on the objects of the review, which may be large, is done by `compute`."""
        try:
            request = await compute(partial(admission_review.read, body))
        except TooDeep as problem:
            return admission_review.denied(problem.uid, str(problem), code=HTTPStatus.BAD_REQUEST)
        try:
            return await self._handlers[path](request, compute)
        except InvalidReview as problem:
            return admission_review.denied(request.uid, str(problem), code=HTTPStatus.BAD_REQUEST)
        except ClusterLookupFailed as problem:
            return admission_review.denied(request.uid, str(problem), code=HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            key = f"{request.namespace}/{request.name}"
            log.exception("review failed", key=key, action=path, reason="unexpected exception")
            why = f"internal error of the Grove operator, see its log: {path} {request.operation} {key}"
            return admission_review.denied(request.uid, why, code=HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _default_set(self, request: AdmissionRequest, compute: Compute) -> bytes:
        _require_resource(request, _SETS)
        before, after = await compute(partial(review_steps.with_defaults, request))
        facts, warnings = self._cluster_facts.static_facts, list[str]()
        if request.operation == "CREATE":
            sources = await compute(partial(accelerator_claims.claim_sources, after, facts))
            if sources is not None:
                classes = await self._cluster_facts.device_classes(request.namespace, sources)
                after, warnings = await compute(
                    partial(accelerator_claims.with_claim_annotation, after, facts, classes)
                )
            after = await compute(partial(domains.with_auto_annotation, after, facts))
        return await compute(partial(review_steps.patched, request.uid, before, after, warnings))

    async def _validate_set(self, request: AdmissionRequest, compute: Compute) -> bytes:
        _require_resource(request, _SETS)
        facts = self._cluster_facts.static_facts
        new = await compute(request.new)
        named = await compute(partial(validation.topologies_named, new)) if facts.topology_aware else ()
        lookups = await compute(partial(validation.lookups, new, facts))
        facts = await self._cluster_facts.facts_with_topologies(named, lookups)
        if request.operation == "CREATE" and await compute(partial(domains.names_domains, new, facts)):
            facts = replace(
                facts, domain_sharers=self._cluster_facts.domain_sharers(request.namespace, request.name)
            )
        return await compute(
            partial(review_steps.validate, request, new, facts, validation.on_create, validation.on_update)
        )

    async def _validate_topology(self, request: AdmissionRequest, compute: Compute) -> bytes:
        _require_resource(request, _TOPOLOGIES)
        facts = self._cluster_facts.facts_for_topology(request.resource.resource, request.name)
        if request.operation == "DELETE":
            old = await compute(request.old)
            return admission_review.allowed(request.uid, cluster_topology.on_delete(old, facts).warnings)
        new = await compute(request.new)
        keys = cluster_topology.level_keys(new) if facts.topology_aware else ()
        facts = replace(facts, unused_labels=await self._cluster_facts.unused_labels(keys))
        on_create, on_update = cluster_topology.on_create, cluster_topology.on_update
        return await compute(partial(review_steps.validate, request, new, facts, on_create, on_update))

    async def _default_graph(self, request: AdmissionRequest, compute: Compute) -> bytes:
        _require_resource(request, _GRAPHS, NVIDIA)
        return await compute(partial(review_steps.graph_with_defaults, request))

    async def _validate_graph(self, request: AdmissionRequest, compute: Compute) -> bytes:
        _require_resource(request, _GRAPHS, NVIDIA)
        new = await compute(request.new)
        context = await self._graphs.context_for(new)
        facts = self._graphs.facts(context)
        operator_user = self._cluster_facts.static_facts.operator_user
        validate = partial(review_steps.validate_graph, request, new, context, facts, operator_user)
        return await compute(validate)

    async def _authorise(self, request: AdmissionRequest, compute: Compute) -> bytes:
        query = await compute(partial(review_steps.managed_object_request, request))
        name = authorization.parent_name(query)
        parent = await self._cluster_facts.parent(request.namespace, name) if name else None
        decision = authorization.authorize(query, parent, self._cluster_facts.static_facts)
        if decision.allowed:
            return admission_review.allowed(request.uid, decision.warnings)
        return admission_review.denied(request.uid, decision.reason, decision.warnings)


def _require_resource(request: AdmissionRequest, plurals: frozenset[str], group: str = GROVE) -> None:
    """Raises InvalidReview for a resource that the webhook does not handle: its configuration is wrong."""
    resource = request.resource
    if resource.group != group or resource.resource not in plurals:
        about = f"{resource.resource}.{resource.group}"[:200]
        raise InvalidReview(f"unexpected resource {about}: correct the rules of the webhook configuration")
