"""Validation of a DynamoGraphDeployment on creation and on update, for the webhook and the planner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from grove.api.field_errors import ErrorType, FieldError, forbidden, invalid, required
from grove.api.field_errors import unsupported as not_among
from grove.dynamo import keys
from grove.dynamo.admission import (
    component_rules,
    rendered_pods,
    restart_rules,
    scaling_rules,
    topology_rules,
    unsupported_fields,
    version_rules,
)
from grove.dynamo.admission.set_errors import errors_of_graph
from grove.dynamo.api.common import MAX_COMPONENTS
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.context import GraphContext, provider, runs_on_grove
from grove.dynamo.decode.decoder import new_errors
from grove.dynamo.decode.normalize import ParsedGraph, parse
from grove.dynamo.graph import Graph
from grove.dynamo.render import podcliqueset
from grove.rules import syntax
from grove.rules.decode import ObjectFormatError
from grove.rules.error_verdict import never_raises
from grove.rules.model import AdmissionResult, Facts
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set

Body = dict[str, Any]

_MAX_WARNINGS = 20
_PROVIDERS = (keys.GROVE, keys.COMPONENTS)
_CHOICES = {
    keys.VLLM_EXECUTOR: ("mp", "ray"),
    keys.UPDATE_STRATEGY: ("RollingRecreate", "OnDelete"),
    keys.DISCOVERY_MODE: ("pod", "container"),
    keys.DISCOVERY_BACKEND: (keys.KUBERNETES, keys.ETCD),
    keys.PROVIDER: _PROVIDERS,
}
_WITHOUT_CASE = frozenset({keys.VLLM_EXECUTOR})


@never_raises
def on_create(new: Body, known: GraphContext, facts: Facts | None = None) -> AdmissionResult:
    """Validate a new graph; with `facts`, also the PodCliqueSet that is rendered from it. Never raises."""
    if wrong := tuple(version_rules.errors(new)):
        return AdmissionResult(wrong)
    parsed = parse(new)
    graph = parsed.graph
    errors = [
        *blocking_errors(parsed, known),
        *component_rules.on_create(graph),
        *restart_rules.on_create(graph),
    ]
    errors += topology_rules.on_create(graph, known)
    errors = errors or list(rendered_pods.errors(parsed.deployment, graph))
    if facts is not None and not errors and runs_on_grove(graph):
        setting = podcliqueset.RenderSettings(topology_rules.resolve(graph, known), known.scheduler)
        rendered = default_set(podcliqueset.workload(graph, setting))
        errors += errors_of_graph(graph, rendered, validation.on_create(rendered, facts).errors, facts)
    return _result(errors, parsed, new)


@never_raises
def on_update(old: Body, new: Body, known: GraphContext, by: str = "") -> AdmissionResult:
    """Validate an update. Errors that the old object already had do not reject it. `by` is the requesting
    user; empty for the operator itself. Never raises."""
    if wrong := tuple(version_rules.errors(new, old)):
        return AdmissionResult(wrong)
    try:
        parsed = parse(new)
    except ObjectFormatError as format_error:
        return AdmissionResult(new_errors(tuple(format_error.errors), old))
    errors = list(blocking_errors(parsed, known))
    try:
        before = parse(old)
    except ObjectFormatError:
        return _result(errors, parsed, new)
    excused = set(map(str, blocking_errors(before, known))) if errors else set()
    errors = [error for error in errors if str(error) not in excused]
    errors += [
        *_immutable_fields(before.deployment, parsed.deployment),
        *component_rules.on_update(before.graph, parsed.graph),
        *topology_rules.on_update(before.graph, parsed.graph),
        *scaling_rules.on_update(before.graph, parsed.graph, by),
    ]
    return _result(errors or _new_duplicates(before, parsed), parsed, new)


def _new_duplicates(before: ParsedGraph, parsed: ParsedGraph) -> list[FieldError]:
    """The duplicates in the rendered pods that the old object did not have."""
    if not (errors := list(rendered_pods.errors(parsed.deployment, parsed.graph))):
        return []
    known = set(map(str, rendered_pods.errors(before.deployment, before.graph)))
    return [error for error in errors if str(error) not in known]


def blocking_errors(parsed: ParsedGraph, known: GraphContext) -> Iterator[FieldError]:
    """The errors that keep a graph from being reconciled even if admission never saw the object."""
    found, graph = parsed.deployment, parsed.graph
    yield from _structure(found, graph)
    yield from _annotations(graph)
    yield from unsupported_fields.errors(found)
    yield from component_rules.errors(found, graph)
    yield from component_rules.backend_errors(graph, known)
    yield from restart_rules.errors(graph)


def _result(errors: list[FieldError], parsed: ParsedGraph, new: Body) -> AdmissionResult:
    if errors:
        return AdmissionResult(tuple(errors))
    warnings = (
        *version_rules.warnings(new),
        *unsupported_fields.warnings(parsed.deployment),
        *component_rules.warnings(parsed.graph),
    )
    return AdmissionResult(warnings=tuple(islice(warnings, _MAX_WARNINGS)))


def _structure(found: DynamoGraphDeployment, graph: Graph) -> Iterator[FieldError]:
    spelled = syntax.host_name_part if runs_on_grove(graph) else syntax.subdomain
    for why in spelled(graph.name) if graph.name else ():
        yield invalid("metadata.name", graph.name, why)
    if found.spec.components and found.spec.services:
        why = "spec.components is set as well: remove one of the two"
        yield forbidden("spec.services", why)
    if not graph.components:
        yield required("spec.components", "at least one, or spec.services in v1alpha1")
    if len(graph.components) > MAX_COMPONENTS:
        path = "spec.components" if found.spec.components else "spec.services"
        yield FieldError(path, ErrorType.INVALID, len(graph.components), f"at most {MAX_COMPONENTS}")
    topologies = found.spec.topology_constraint
    if topologies:
        names = (topologies.cluster_topology_name, topologies.topology_profile, topologies.topology_name)
        if len(set(filter(None, names))) > 1:
            why = "clusterTopologyName, topologyProfile and topologyName mean the same: set one of them"
            yield invalid("spec.topologyConstraint", ", ".join(filter(None, names)), why)


def _annotations(graph: Graph) -> Iterator[FieldError]:
    for key, choices in _CHOICES.items():
        value = graph.own_annotations.get(key)
        if value is not None and (value.lower() if key in _WITHOUT_CASE else value) not in choices:
            yield not_among(f"metadata.annotations[{key}]", value, choices)
    version = graph.own_annotations.get(keys.ORIGIN_VERSION)
    if version is not None and not component_rules.is_version(version):
        why = "must be a semantic version such as 1.4.0"
        yield invalid(f"metadata.annotations[{keys.ORIGIN_VERSION}]", version, why)


def _immutable_fields(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[FieldError]:
    if old.spec.backend_framework != new.spec.backend_framework:
        yield forbidden("spec.backendFramework", "cannot be changed")
    before, after = old.metadata.annotations, new.metadata.annotations
    if before.get(keys.PROVIDER) and provider(before) != provider(after):
        path = f"metadata.annotations[{keys.PROVIDER}]"
        yield forbidden(path, f"the graph runs on {provider(before)}, which cannot be changed")
