"""Validation of a PodCliqueSet, for the validating webhook.

Both entry points take raw JSON objects, after `default_set`; unknown fields are ignored. Types are checked
first, then the rules of the modules of this package, and all errors are reported at once. An update is not
refused for errors that the stored set has as well: a set that was stored under other rules can still be
scaled and corrected.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import msgspec

from grove.api.field_errors import FieldError, invalid, required
from grove.api.types.podcliqueset import PodCliqueSet
from grove.rules import counts, decode, syntax
from grove.rules.claims import resource_sharing
from grove.rules.decode import ObjectFormatError, Workload
from grove.rules.error_verdict import never_raises
from grove.rules.fabric import domain_warnings, domains, mnnvl_group, packing
from grove.rules.model import AdmissionResult, Facts
from grove.rules.podcliqueset import (
    annotation_keys,
    cliques,
    fallbacks,
    immutable_fields,
    priority_classes,
    scaling_groups,
    scheduler_rules,
    startup_order,
    topology_constraints,
    update_strategy,
)
from grove.rules.podcliqueset.defaults import default_set
from grove.schedulers.backend import ClusterLookup

Body = dict[str, Any]

_MAX_WARNINGS = 20
_MAX_WARNING = 256
"""The length to which the API server truncates a warning."""


@never_raises
def on_create(new: Body, facts: Facts) -> AdmissionResult:
    """The verdict on a new set. Never raises."""
    workload = decode.workload(new)
    errors = [
        *_errors(workload, facts, creating=True),
        *(
            topology_constraints.on_create(workload, facts)
            or fallbacks.on_create(workload, facts)
            or scheduler_rules.unsupported_constraints(workload, facts)
        ),
        *mnnvl_group.on_create(workload, facts),
        *domains.on_create(workload, facts),
        *packing.on_create(workload, facts),
        *counts.on_create(workload, facts),
    ]
    modules = (annotation_keys, topology_constraints, fallbacks, scheduler_rules, domain_warnings, packing)
    hints = chain.from_iterable(module.warnings(workload, facts) for module in modules)
    return _result(errors, chain(_warnings(workload), hints))


@never_raises
def on_update(old: Body, new: Body, facts: Facts) -> AdmissionResult:
    """The verdict on a change of a set. Never raises."""
    workload = decode.workload(new)
    try:
        stored = decode.workload(default_set(old))
    except (ObjectFormatError, RecursionError):
        # The stored set cannot be decoded, so changes are unknown: the new set is validated on its own.
        errors = [*_errors(workload, facts, creating=False), *counts.on_create(workload, facts)]
        return _result(errors, _warnings(workload))
    errors = list(_errors(workload, facts, creating=False))
    if errors:
        known = set(map(str, _errors(stored, facts, creating=False)))
        errors = [error for error in errors if str(error) not in known]
    errors += immutable_fields.errors(stored, workload)
    errors += topology_constraints.on_update(stored, workload, facts)
    errors += fallbacks.on_update(stored, workload)
    errors += mnnvl_group.on_update(stored, workload)
    errors += domains.on_update(stored, workload, facts)
    errors += packing.on_update(stored, workload, facts)
    errors += counts.on_update(stored, workload, facts)
    hints = (module.update_warnings(stored, workload, facts) for module in (annotation_keys, domain_warnings))
    return _result(errors, chain(_warnings(workload), *hints))


def errors_of_stored(stored: PodCliqueSet) -> AdmissionResult:
    """The verdict on a set as it is stored, by the rules that depend on the set alone: without webhooks, or
    under older rules, any set that passes the schema is stored. Never raises."""
    metadata = {"name": stored.metadata.name, "namespace": stored.metadata.namespace}
    spec = msgspec.json.decode(msgspec.json.encode(stored.spec))
    return _own_verdict(default_set({"metadata": metadata, "spec": spec}))


@never_raises
def _own_verdict(body: Body) -> AdmissionResult:
    return AdmissionResult(tuple(_own_errors(decode.workload(body), creating=False)))


def topologies_named(body: Body) -> frozenset[str]:
    """The topologies that the set names. The caller looks up those that are missing in `Facts` before it asks
    for a verdict. Never raises."""
    try:
        return topology_constraints.topologies_named(decode.workload(body))
    except (ObjectFormatError, RecursionError):
        return frozenset()


def lookups(body: Body, facts: Facts) -> tuple[ClusterLookup, ...]:
    """Other cluster objects that the verdict depends on, for the caller to look up. Never raises."""
    try:
        workload = decode.workload(body)
        return (*scheduler_rules.lookups(workload, facts), *priority_classes.lookups(workload))
    except (ObjectFormatError, RecursionError):
        return ()


def _result(errors: list[FieldError], warnings: Iterator[str]) -> AdmissionResult:
    if errors:
        return AdmissionResult(tuple(errors))
    return AdmissionResult(warnings=tuple(each[:_MAX_WARNING] for each in islice(warnings, _MAX_WARNINGS)))


def _errors(workload: Workload, facts: Facts, creating: bool) -> Iterator[FieldError]:
    yield from _own_errors(workload, creating)
    if not facts.start_order:
        yield from startup_order.disabled(workload.template)
    yield from priority_classes.errors(workload, facts)
    yield from scheduler_rules.errors(workload, facts)


def _own_errors(workload: Workload, creating: bool) -> Iterator[FieldError]:
    """Errors that follow from the set alone."""
    yield from _metadata(workload)
    if workload.spec.replicas < 0:
        yield invalid("spec.replicas", workload.spec.replicas, "must be non-negative")
    yield from resource_sharing.errors(workload)
    yield from cliques.errors(workload, creating)
    yield from startup_order.errors(workload.template)
    yield from scaling_groups.errors(workload)
    delay = workload.template.termination_delay
    if delay is None:
        yield required("spec.template.terminationDelay")
    else:
        yield from update_strategy.duration("spec.template.terminationDelay", delay)


def _metadata(workload: Workload) -> Iterator[FieldError]:
    metadata = workload.metadata
    if metadata.name:
        yield from (
            invalid("metadata.name", metadata.name, why) for why in syntax.host_name_part(metadata.name)
        )
    elif metadata.generate_name:
        for why in syntax.host_name_part(metadata.effective_name):
            yield invalid("metadata.generateName", metadata.generate_name, why)
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from syntax.label_errors("metadata.labels", metadata.labels)
    yield from syntax.annotation_errors("metadata.annotations", metadata.annotations)


def _warnings(workload: Workload) -> Iterator[str]:
    yield from cliques.warnings(workload)
    yield from startup_order.warnings(workload.template)
    yield from scaling_groups.warnings(workload)
