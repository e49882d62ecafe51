"""The verdict of admission on an object: by the API server in a dry run, or by our own rules, which are those
of the webhooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove.api.field_errors import FieldError
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.operator_setup import OperatorSetup
from grove.dry_run.documents import Document
from grove.dry_run.model import AdmissionVerdict
from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.context import GraphContext
from grove.dynamo.decode import decoder
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from grove.operator.caches.registry import Caches
from grove.operator.caches.resources import resource_of
from grove.rules import cluster_topology
from grove.rules.fabric import domains
from grove.rules.model import AdmissionResult, Facts
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.rules.podcliqueset.priority_classes import PRIORITY_CLASS
from grove.schedulers.backend import ClusterLookup

Body = dict[str, Any]
OWN_RULES = "the rules of this grove"
SERVER = "the API server (dry run)"
_WEBHOOK = "admission webhook"
_NO_RIGHT = re.compile(r'User ".*" cannot \w+ resource ')
"""How authorization says that a right is missing; quotas, policies and namespaces forbid in other words."""
_USER = "user"
"""Stands for the user who applies the object, who is neither the operator nor a component of a graph."""


class Admitted(Struct, frozen=True):
    """An object as it would be stored, and the verdict."""

    body: Body
    verdict: AdmissionVerdict


async def admit_by_server(client: Client, document: Document, stored: Body | None) -> Admitted | None:
    """The verdict of the API server, with everything that it asks; None if it gives none, such as for a
    missing right (see `server_verdict`)."""
    resource, name, namespace = _resource(document), document.name, document.namespace or None
    try:
        if stored is None:
            body = await client.create(
                resource, document.body, namespace=namespace, as_type=dict, dry_run=True
            )
        else:
            body = await client.replace(
                resource,
                name,
                updated(stored, document.body),
                namespace=namespace,
                as_type=dict,
                dry_run=True,
            )
    except ApiError as error:
        verdict = server_verdict(error, document)
        return Admitted(document.body, verdict) if verdict is not None else None
    return Admitted(body, AdmissionVerdict(True, SERVER))


def _resource(document: Document) -> Resource:
    """The resource in the version that the object is written in: the API server refuses others."""
    return replace(resource_of(document.kind), version=document.version)


def server_verdict(error: ApiError, document: Document) -> AdmissionVerdict | None:
    """What a failed request says about an object. None if it says nothing: the user may not write it, or it
    has changed since it was read."""
    message = " ".join(error.status.message.split()) or "the server gave no reason"
    details = error.status.details
    match error:
        case Forbidden() if _NO_RIGHT.search(message) and _WEBHOOK not in message:
            return None
        case Conflict() | AlreadyExists():
            return None
        case NotFound() if details is None or not details.name:
            option = " --dynamo" if document.kind == DynamoGraphDeployment.KIND else ""
            kind = f"{document.kind.name} of {document.body['apiVersion']}"
            message = f"the cluster does not serve {kind}: install the CRDs with grove crds{option} --apply"
        case NotFound() if details is not None and details.kind != "namespaces":
            return None  # the object is gone by now
        case NotFound():
            message += ": create it, or choose another one with -n"
        case ServerError() | TooManyRequests() | Unauthorized():
            return AdmissionVerdict(False, SERVER, message, known=False)
    return AdmissionVerdict(False, SERVER, message)


def updated(stored: Body, body: Body) -> Body:
    """A stored object with what a user has changed. Labels and annotations that others have added stay, as
    with kubectl apply."""
    changed = {
        key: {**(stored["metadata"].get(key) or {}), **value}
        for key, value in body["metadata"].items()
        if key in ("labels", "annotations") and isinstance(value, dict)
    }
    return {
        **stored,
        **body,
        "metadata": {**stored["metadata"], **changed},
        "status": stored.get("status", {}),
    }


def admit_by_rules(document: Document, stored: Body | None, setup: OperatorSetup, caches: Caches) -> Admitted:
    """The verdict of our own rules, as the webhooks have them; objects get the same defaults."""
    facts = Facts.of(setup.configuration, _topologies(caches), in_use=setup.backends, fabrics=setup.fabrics)
    new = updated(stored, document.body) if stored is not None else document.body
    if document.kind == PodCliqueSet.KIND:
        body, verdict = _set(new, stored, facts, caches)
    elif document.kind in (ClusterTopology.KIND, ClusterTopologyBinding.KIND):
        body = new
        verdict = (
            cluster_topology.on_create(new, facts)
            if stored is None
            else cluster_topology.on_update(stored, new, facts)
        )
    else:
        body, verdict = _graph(new, stored, setup, facts)
    if (unread := _unread(caches)) and verdict.errors and all(map(_is_topology, verdict.errors)):
        return Admitted(body, AdmissionVerdict(False, OWN_RULES, unread, known=False))
    return Admitted(body, AdmissionVerdict(verdict.allowed, OWN_RULES, verdict.message, verdict.warnings))


def _unread(caches: Caches) -> str:
    """Why not all topologies are known; empty if they are."""
    return caches.topologies.list_error or caches.topology_bindings.list_error


def _is_topology(error: FieldError) -> bool:
    """Whether an error may be due to a topology that is not known."""
    return "topology" in error.path.lower()


def _set(new: Body, stored: Body | None, facts: Facts, caches: Caches) -> tuple[Body, AdmissionResult]:
    body = default_set(new, stored)
    facts = replace(facts, found=dict(_found(validation.lookups(body, facts), caches)))
    if stored is not None:
        return body, validation.on_update(stored, body, facts)
    body = domains.with_auto_annotation(body, facts)
    return body, validation.on_create(body, facts)


def _found(lookups: Iterable[ClusterLookup], caches: Caches) -> Iterator[tuple[ClusterLookup, Body | None]]:
    """The PriorityClasses among the objects that a verdict depends on, None for one that does not exist.
    Other kinds are not read, and classes are not known if they could not be listed."""
    classes = caches.priority_classes
    for lookup in lookups:
        if lookup.kind == PRIORITY_CLASS and classes.synced.is_set():
            yield lookup, ({} if classes.get("", lookup.name) is not None else None)


def priority_classes(body: Body) -> list[str]:
    """The PriorityClasses that a set and its pods name."""
    found = validation.lookups(body, Facts())
    return sorted({each.name for each in found if each.kind == PRIORITY_CLASS})


def _graph(
    new: Body, stored: Body | None, setup: OperatorSetup, facts: Facts
) -> tuple[Body, AdmissionResult]:
    if wrong := decoder.decode_errors(new):
        return new, AdmissionResult(tuple(wrong))
    context = replace(GraphContext.of(setup.configuration), topologies=facts.topologies)
    body = default_graph(new, creating=stored is None, old=stored)
    if stored is not None:
        return body, graph_validation.on_update(stored, body, context, _USER)
    return body, graph_validation.on_create(body, context, facts)


def _topologies(caches: Caches) -> Mapping[str, tuple[str, ...]]:
    found = (*caches.topology_bindings, *caches.topologies)
    return {each.metadata.name: tuple(level.domain for level in each.spec.levels) for each in found}
