"""What is refused of a PodCliqueSet, and why.

Both entry points take raw JSON objects, after `default_set`; fields that nobody here knows are left alone.
First the shape is judged, then the rules: whatever is wrong is told at once. A change is not held up by what
was wrong before it: a set that was stored under other rules can still be scaled and mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from grove.rules import (
    backends,
    cliques,
    constraints,
    counts,
    fabric,
    fabric_warnings,
    fixed,
    groups,
    mnnvl,
    order,
    pace,
    shape,
    sharing,
    syntax,
)
from grove.rules.defaults import default_set
from grove.rules.guard import judged
from grove.rules.model import Facts, FieldError, Verdict, invalid, required
from grove.rules.shape import Misshapen, Workload
from grove.schedulers.backend import Enquiry

Body = dict[str, Any]

_MOST_WARNED = 20
_LONGEST_WARNING = 256
"""What the API server hands on."""


@judged
def on_create(new: Body, facts: Facts) -> Verdict:
    """Judges a set that is to be made. Never raises."""
    workload = shape.workload(new)
    errors = [
        *_errors(workload, facts, creating=True),
        *(constraints.on_create(workload, facts) or backends.unkept(workload, facts)),
        *mnnvl.on_create(workload, facts),
        *fabric.on_create(workload, facts),
        *counts.on_create(workload, facts),
    ]
    rooms = (constraints, backends, fabric_warnings)
    told = chain.from_iterable(room.warnings(workload, facts) for room in rooms)
    return _verdict(errors, chain(_warnings(workload), told))


@judged
def on_update(old: Body, new: Body, facts: Facts) -> Verdict:
    """Judges a change. Never raises."""
    workload = shape.workload(new)
    try:
        stored = shape.workload(default_set(old))
    except (Misshapen, RecursionError):
        # Nothing can be said about what changed; the new object stands for itself.
        errors = [*_errors(workload, facts, creating=False), *counts.on_create(workload, facts)]
        return _verdict(errors, _warnings(workload))
    errors = list(_errors(workload, facts, creating=False))
    if errors:
        known = set(map(str, _errors(stored, facts, creating=False)))
        errors = [error for error in errors if str(error) not in known]
    errors += fixed.errors(stored, workload)
    errors += constraints.on_update(stored, workload, facts)
    errors += mnnvl.on_update(stored, workload)
    errors += fabric.on_update(stored, workload, facts)
    errors += counts.on_update(stored, workload, facts)
    return _verdict(errors, _warnings(workload))


def topologies_named(body: Body) -> frozenset[str]:
    """Topologies that the set names: whoever asks for a verdict looks for those that `Facts` does not know.
    Never raises."""
    try:
        return constraints.topologies_named(shape.workload(body))
    except (Misshapen, RecursionError):
        return frozenset()


def enquiries(body: Body, facts: Facts) -> tuple[Enquiry, ...]:
    """What else of the cluster decides about the set, to be looked for likewise. Never raises."""
    try:
        return backends.enquiries(shape.workload(body), facts)
    except (Misshapen, RecursionError):
        return ()


def _verdict(errors: list[FieldError], warnings: Iterator[str]) -> Verdict:
    if errors:
        return Verdict(tuple(errors))
    return Verdict(warnings=tuple(each[:_LONGEST_WARNING] for each in islice(warnings, _MOST_WARNED)))


def _errors(workload: Workload, facts: Facts, creating: bool) -> Iterator[FieldError]:
    yield from _metadata(workload)
    if workload.spec.replicas < 0:
        yield invalid("spec.replicas", workload.spec.replicas, "must be non-negative")
    yield from sharing.errors(workload)
    yield from cliques.errors(workload, creating)
    yield from backends.errors(workload, facts)
    yield from order.errors(workload.template)
    yield from groups.errors(workload)
    delay = workload.template.termination_delay
    if delay is None:
        yield required("spec.template.terminationDelay")
    else:
        yield from pace.duration("spec.template.terminationDelay", delay)


def _metadata(workload: Workload) -> Iterator[FieldError]:
    metadata = workload.metadata
    if metadata.name:
        yield from (
            invalid("metadata.name", metadata.name, why) for why in syntax.part_of_host(metadata.name)
        )
    elif metadata.generate_name:
        for why in syntax.part_of_host(metadata.called):
            yield invalid("metadata.generateName", metadata.generate_name, why)
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from syntax.label_errors("metadata.labels", metadata.labels)
    yield from syntax.annotation_errors("metadata.annotations", metadata.annotations)


def _warnings(workload: Workload) -> Iterator[str]:
    yield from cliques.warnings(workload)
    yield from order.warnings(workload.template)
    yield from groups.warnings(workload)
