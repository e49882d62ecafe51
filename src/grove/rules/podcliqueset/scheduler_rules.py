"""Validation of a set for the scheduler that it names, by calling the backend of this scheduler.

A backend that raises results in an error on sets that use it, never in an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.field_errors import FieldError, invalid
from grove.api.meta import ObjectMeta
from grove.rules import syntax
from grove.rules.decode import Workload
from grove.rules.model import Facts
from grove.schedulers.backend import ClusterLookup, SchedulerBackend, SchedulingSpec
from grove.topology.fallbacks import fallbacks_of

_PATH = "spec.template.cliques.spec.podSpec.schedulerName"


def errors(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors if pods name different schedulers or a disabled one, and errors that the backend reports."""
    named = _named(workload, facts)
    if len(named) > 1:
        yield invalid(_PATH, list(named), "the schedulerName for all pods have to be the same")
    for name in named:
        if name not in facts.schedulers:
            yield invalid(
                _PATH,
                name,
                "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in "
                f"OperatorConfiguration. Enabled: {', '.join(facts.schedulers)}",
            )
    backend = _backend(workload, facts)
    if backend is not None:
        yield from (
            invalid("spec", backend.name, wrong) for wrong in _backend_errors(backend, workload, facts)
        )


def unsupported_constraints(workload: Workload, facts: Facts) -> list[FieldError]:
    """Errors for topology constraints that the scheduler cannot keep, unless its profile says to warn
    only."""
    return [
        invalid("spec", name, why) for name, why in _unsupported_constraints(workload, facts, lenient=False)
    ]


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """Warnings for topology constraints that the scheduler cannot keep, where its profile says to warn
    only."""
    yield from (why for _, why in _unsupported_constraints(workload, facts, lenient=True))


def lookups(workload: Workload, facts: Facts) -> tuple[ClusterLookup, ...]:
    """The cluster objects that the backend needs to validate the set."""
    backend = _backend(workload, facts)
    if backend is None:
        return ()
    try:
        return tuple(backend.lookups(_scheduling_spec(workload)))
    except Exception:  # `errors` reports it
        return ()


def _named(workload: Workload, facts: Facts) -> dict[str, None]:
    """The schedulers that pods name, in the order of the cliques and without duplicates."""
    return {pod.scheduler_name or facts.backends.default_name: None for pod in workload.pods}


def _backend(workload: Workload, facts: Facts) -> SchedulerBackend | None:
    return facts.backends.of(next(iter(_named(workload, facts)), ""))


def _unsupported_constraints(workload: Workload, facts: Facts, *, lenient: bool) -> Iterator[tuple[str, str]]:
    backend = _backend(workload, facts)
    if backend is not None and (backend.name in facts.backends.lenient) is lenient:
        yield from (
            (backend.name, why) for why in _call_backend(backend, backend.unsupported_constraints, workload)
        )
        if fallbacks_of(workload.template) and not backend.tries_fallbacks:
            yield (
                backend.name,
                f"{backend.name} does not try topologyConstraint.fallbacks: remove them, or use "
                f"{DEFAULT_SCHEDULER} with placement in its profile",
            )


def _backend_errors(backend: SchedulerBackend, workload: Workload, facts: Facts) -> Iterator[str]:
    yield from _call_backend(backend, backend.unschedulable_reasons, workload)
    yield from _call_backend(
        backend, lambda scheduling_spec: _lookup_errors(backend, scheduling_spec, facts), workload
    )


def _lookup_errors(backend: SchedulerBackend, scheduling_spec: SchedulingSpec, facts: Facts) -> Iterator[str]:
    for lookup in backend.lookups(scheduling_spec):
        name_errors = [f"{lookup.where}: {why}" for why in syntax.subdomain(lookup.name)]
        yield from name_errors
        if not name_errors and lookup in facts.found:
            problem = backend.lookup_problem(lookup, facts.found[lookup])
            yield from [problem] if problem else []


def _call_backend(
    backend: SchedulerBackend, method: Callable[[SchedulingSpec], Iterable[str]], workload: Workload
) -> list[str]:
    """The messages of a backend. Third-party backends may raise, which becomes a message as well."""
    try:
        return list(method(_scheduling_spec(workload)))
    except Exception as problem:
        return [f"scheduler backend {backend.name} failed: {type(problem).__name__}: {problem}"]


def _scheduling_spec(workload: Workload) -> SchedulingSpec:
    meta = workload.metadata
    return SchedulingSpec(
        ObjectMeta(meta.effective_name, meta.namespace, labels=meta.labels, annotations=meta.annotations),
        workload.template,
    )
