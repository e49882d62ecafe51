"""What is refused of a DynamoGraphDeployment, and why: on creation, and on a change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from grove.dynamo import devices, keys, parts, restarts, scaling, sets, topology, unsupported
from grove.dynamo.common import MOST_COMPONENTS
from grove.dynamo.graph import Graph
from grove.dynamo.normalise import graph as normalised
from grove.dynamo.reading import misshapen, ratcheted, read
from grove.dynamo.surroundings import Surroundings, provider, runs_on_grove
from grove.dynamo.types import DynamoGraphDeployment
from grove.rules import syntax, validate
from grove.rules.defaults import default_set
from grove.rules.guard import judged
from grove.rules.model import Facts, FieldError, Problem, Verdict, forbidden, invalid, required
from grove.rules.model import unsupported as not_among
from grove.rules.shape import Misshapen

Body = dict[str, Any]

_MOST_WARNED = 20
_PROVIDERS = (keys.GROVE, keys.COMPONENTS)
_CHOICES = {
    keys.VLLM_EXECUTOR: ("mp", "ray"),
    keys.UPDATE_STRATEGY: ("RollingRecreate", "OnDelete"),
    keys.DISCOVERY_MODE: ("pod", "container"),
    keys.DISCOVERY_BACKEND: (keys.KUBERNETES, keys.ETCD),
    keys.PROVIDER: _PROVIDERS,
}
_WITHOUT_CASE = frozenset({keys.VLLM_EXECUTOR})


@judged
def on_create(new: Body, known: Surroundings, facts: Facts | None = None) -> Verdict:
    """Judges a deployment that is to be made; with `facts`, also whether Grove would take its set. Never
    raises."""
    found = read(new)
    graph = normalised(found)
    errors = [*_standing(found, graph, known), *parts.on_create(graph), *restarts.on_create(graph)]
    errors += topology.on_create(graph, known)
    if facts is not None and not errors and runs_on_grove(graph):
        setting = sets.Setting(topology.resolve(graph, known), known.scheduler)
        wrong = validate.on_create(default_set(sets.workload(graph, setting)), facts).errors
        errors += [
            invalid("spec", graph.name, f"Grove would refuse its PodCliqueSet: {each}") for each in wrong
        ]
    return _verdict(errors, found, graph)


@judged
def on_update(old: Body, new: Body, known: Surroundings, by: str = "") -> Verdict:
    """Judges a change. What was wrong before does not hold it up. `by` is who asks, if it is not us. Never
    raises."""
    if form := misshapen(new):
        return Verdict(ratcheted(form, old))
    found = read(new)
    graph = normalised(found)
    errors = list(_standing(found, graph, known))
    try:
        before = read(old)
    except (Misshapen, RecursionError):
        return _verdict(errors, found, graph)
    stored = normalised(before)
    excused = set(map(str, _standing(before, stored, known))) if errors else set()
    errors = [error for error in errors if str(error) not in excused]
    errors += [*_fixed(before, found), *parts.on_update(stored, graph), *topology.on_update(stored, graph)]
    errors += scaling.on_update(stored, graph, by)
    return _verdict(errors, found, graph)


def standing(body: Body, known: Surroundings) -> tuple[Graph, list[FieldError]]:
    """The deployment, and what keeps it from being acted on whether or not it was ever judged. Raises
    Misshapen."""
    found = read(body)
    graph = devices.counted(normalised(found), known.claim_templates)
    return graph, list(_standing(found, graph, known))


def _verdict(errors: list[FieldError], found: DynamoGraphDeployment, graph: Graph) -> Verdict:
    if errors:
        return Verdict(tuple(errors))
    told = (*unsupported.warnings(found), *parts.warnings(graph))
    return Verdict(warnings=tuple(islice(told, _MOST_WARNED)))


def _standing(found: DynamoGraphDeployment, graph: Graph, known: Surroundings) -> Iterator[FieldError]:
    yield from _shape(found, graph)
    yield from _annotations(graph)
    yield from unsupported.errors(found)
    yield from parts.errors(found, graph)
    yield from parts.of_provider(graph, known)
    yield from restarts.errors(graph)


def _shape(found: DynamoGraphDeployment, graph: Graph) -> Iterator[FieldError]:
    spelled = syntax.part_of_host if runs_on_grove(graph) else syntax.subdomain
    for why in spelled(graph.name) if graph.name else ():
        yield invalid("metadata.name", graph.name, why)
    if found.spec.components and found.spec.services:
        why = "the components are in spec.components already: keep one of the two"
        yield forbidden("spec.services", why)
    if not graph.components:
        yield required("spec.components", "at least one, or spec.services in v1alpha1")
    if len(graph.components) > MOST_COMPONENTS:
        path = "spec.components" if found.spec.components else "spec.services"
        yield FieldError(path, Problem.INVALID, len(graph.components), f"at most {MOST_COMPONENTS}")
    topologies = found.spec.topology_constraint
    if topologies:
        names = (topologies.cluster_topology_name, topologies.topology_profile, topologies.topology_name)
        if len(set(filter(None, names))) > 1:
            why = "clusterTopologyName, topologyProfile and topologyName mean the same: say it once"
            yield invalid("spec.topologyConstraint", ", ".join(filter(None, names)), why)


def _annotations(graph: Graph) -> Iterator[FieldError]:
    for key, choices in _CHOICES.items():
        value = graph.own_annotations.get(key)
        if value is not None and (value.lower() if key in _WITHOUT_CASE else value) not in choices:
            yield not_among(f"metadata.annotations[{key}]", value, choices)
    version = graph.own_annotations.get(keys.ORIGIN_VERSION)
    if version is not None and not parts.is_version(version):
        why = "must be a semantic version such as 1.4.0"
        yield invalid(f"metadata.annotations[{keys.ORIGIN_VERSION}]", version, why)


def _fixed(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[FieldError]:
    if old.spec.backend_framework != new.spec.backend_framework:
        yield forbidden("spec.backendFramework", "cannot be changed")
    before, after = old.metadata.annotations, new.metadata.annotations
    if before.get(keys.PROVIDER) and provider(before) != provider(after):
        path = f"metadata.annotations[{keys.PROVIDER}]"
        yield forbidden(path, f"the deployment runs on {provider(before)} and cannot be moved")
