"""The steps of reviews between which facts are read: pure functions, which may run in any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.context import GraphContext
from grove.dynamo.decode import decoder
from grove.rules.model import AdmissionResult, Facts, ManagedObjectRequest
from grove.rules.podcliqueset import defaults
from grove.webhooks import admission_review, json_patch
from grove.webhooks.admission_review import AdmissionRequest

Body = dict[str, Any]


def with_defaults(request: AdmissionRequest) -> tuple[Body, Body]:
    """A set as it was sent, and with its defaults."""
    before, old = request.new(), request.old() if request.operation == "UPDATE" else None
    return before, defaults.default_set(before, old)


def patched(uid: str, before: Body, after: Body, warnings: Sequence[str] = ()) -> bytes:
    """A response that changes the object."""
    return admission_review.allowed(uid, warnings, patch=list(json_patch.diff(before, after)))


def validate(
    request: AdmissionRequest,
    new: Body,
    facts: Facts,
    on_create: Callable[[Body, Facts], AdmissionResult],
    on_update: Callable[[Body, Body, Facts], AdmissionResult],
) -> bytes:
    """The response of the rules for a set or a topology."""
    if request.operation == "CREATE":
        return _answer(request, on_create(new, facts))
    if request.operation == "UPDATE":
        return _answer(request, on_update(request.old(), new, facts))
    return admission_review.allowed(request.uid)


def graph_with_defaults(request: AdmissionRequest) -> bytes:
    """Denies objects that do not fit their type already before validation: the API server would report only
    one of the fields, and drop unknown ones."""
    before = request.new()
    wrong = decoder.decode_errors(before)
    if wrong and request.operation == "UPDATE":
        wrong = decoder.new_errors(wrong, request.old())
    if wrong:
        return admission_review.denied(request.uid, AdmissionResult(wrong).message)
    old = request.old() if request.operation == "UPDATE" else None
    after = default_graph(before, creating=request.operation == "CREATE", old=old)
    return patched(request.uid, before, after)


def validate_graph(
    request: AdmissionRequest, new: Body, context: GraphContext, facts: Facts, operator_user: str
) -> bytes:
    """The response of the rules for a DynamoGraphDeployment."""
    if request.operation == "CREATE":
        return _answer(request, graph_validation.on_create(new, context, facts))
    user = request.user_info.username
    by = user if operator_user and user != operator_user else ""
    return _answer(request, graph_validation.on_update(request.old(), new, context, by=by))


def managed_object_request(request: AdmissionRequest) -> ManagedObjectRequest:
    """What the authorizer decides on."""
    return ManagedObjectRequest(
        operation=request.operation,
        resource=request.resource.resource,
        user=request.user_info.username,
        namespace=request.namespace,
        name=request.name,
        old_labels=_labels(request.old()) if request.operation in ("UPDATE", "DELETE") else {},
        new_labels=_labels(request.new()) if request.operation in ("CREATE", "UPDATE") else {},
    )


def _answer(request: AdmissionRequest, verdict: AdmissionResult) -> bytes:
    if verdict.allowed:
        return admission_review.allowed(request.uid, verdict.warnings)
    return admission_review.denied(request.uid, verdict.message, verdict.warnings)


def _labels(body: Mapping[str, Any]) -> Mapping[str, str]:
    metadata = body.get("metadata")
    found = metadata.get("labels") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
